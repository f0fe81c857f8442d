"""The cell agent: runs on the rented pod and takes finished cells to the Hugging Face Hub, one commit per cell.

Standard library and huggingface_hub only, Python 3.10 or newer. `python -m gpupod_cell --help` explains it.
"""

FORMAT = 1
"""Version of cells.json, state.json, the manifest and the commit trailers."""
