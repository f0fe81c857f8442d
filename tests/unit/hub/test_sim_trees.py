"""Tree ids kept up to date commit by commit are those of the whole snapshot."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from gpupod_rehearsal.hub.objects import regular_file
from gpupod_rehearsal.hub.trees import TreeIndex, directories

# Files and folders never share a name here, as git demands.
FOLDERS = st.lists(st.sampled_from(["d", "e-", "e"]), max_size=3)
PATHS = st.builds(lambda folders, name: "/".join([*folders, name]), FOLDERS, st.sampled_from(["x", "y.json", "e.json"]))
COMMITS = st.lists(st.tuples(st.dictionaries(PATHS, st.binary(max_size=2), max_size=5), st.sets(PATHS)), max_size=6)


@settings(deadline=None, max_examples=200)
@given(COMMITS)
def test_an_index_after_any_history_equals_a_fresh_one(commits):
    snapshot, index = {}, TreeIndex({})
    for changed, wanted_gone in commits:
        entries = {path: regular_file(data) for path, data in changed.items()}
        gone = wanted_gone & snapshot.keys()
        for path in gone:
            del snapshot[path]
        snapshot |= entries
        index.update(entries, gone)
        assert index.oids == directories(snapshot)
