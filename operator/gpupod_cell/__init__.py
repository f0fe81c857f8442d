"""The agent that runs on a rented pod and carries finished cells to the Hugging Face Hub."""
