"""The unmodified huggingface_hub client finds in the simulated Hub what it finds in the real one."""

from __future__ import annotations

import hashlib
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gpupod_rehearsal.hub import HubSimulator, SteppedClock

ADA_READS, BOB = "hf_ada_reading_token", "hf_bob_secret_token"
FLOATS = b"".join(struct.pack("<f", number * 0.25) for number in range(40_000))
REPETITIVE = b"loss: 0.125\n" * 20_000
NOISE = hashlib.shake_256(b"weights").digest(400_000)


def operations(hub: HubSimulator, wanted: str) -> list[str]:
    return [request.operation for request in hub.requests if request.operation.startswith(wanted)]


@pytest.mark.parametrize("xet", [True, False], ids=["xet", "lfs"])
async def test_one_commit_carries_small_and_large_files_byte_for_byte(hub, client, tmp_path: Path, xet: bool):
    contents = {
        "cells/c 1/eval#1.json": b'{"acc": 0.5}',
        "cells/c 1/empty.bin": b"",
        "cells/c 1/adapter.safetensors": NOISE,
        "cells/c 1/store.npy": FLOATS,
        "cells/c 1/completions.parquet": REPETITIVE + NOISE[:1000],
    }
    for number, data in enumerate(contents.values()):
        (tmp_path / str(number)).write_bytes(data)
    result = await client(
        f"""
paths = {list(contents)!r}
info = commit([add(path, str(n)) for n, path in enumerate(paths)], commit_message="cell c1",
              commit_description="SweepCell-Uid: u-1\\nSweepCell-Format: 1")
tree = {{f.path: [f.size, f.blob_id, f.lfs and f.lfs.sha256] for f in
        api.list_repo_tree("ada/sweeps", "cells", recursive=True, repo_type="dataset") if hasattr(f, "size")}}
commits = [[c.commit_id, c.title, c.message] for c in api.list_repo_commits("ada/sweeps", repo_type="dataset")]
back = {{p: open(api.hf_hub_download("ada/sweeps", p, repo_type="dataset"), "rb").read().hex() for p in paths}}
out([info.oid, tree, commits, back])
""",
        xet=xet,
    )
    oid, tree, commits, back = result
    assert hub.repo("ada/sweeps").files("cells") == contents
    assert {path: bytes.fromhex(data) for path, data in back.items()} == contents
    assert oid == hub.repo("ada/sweeps").head()
    assert commits[0] == [oid, "cell c1", "SweepCell-Uid: u-1\nSweepCell-Format: 1"]
    assert len(commits) == 2  # the repository's first commit and ours: not one more
    for path, data in contents.items():
        sha1 = hashlib.sha1(f"blob {len(data)}\0".encode() + data).hexdigest()
        sha256 = hashlib.sha256(data).hexdigest()
        size, blob_id, lfs = tree[path]
        assert size == len(data)
        assert (lfs == sha256) if lfs else (blob_id == sha1)
    assert tree["cells/c 1/adapter.safetensors"][2] is not None
    assert bool(operations(hub, "xet_shard")) is xet
    assert bool(operations(hub, "lfs_put")) is not xet


async def test_blob_tree_and_commit_ids_are_git_s_own(hub, tmp_path: Path):
    hub.repo("ada/sweeps").put({"a/b/x.json": b"1", "a.txt": b"2", "a-b": b"3"}, delete=[".gitattributes"])
    for path, data in hub.repo("ada/sweeps").files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("-c", "core.autocrlf=false", "add", ".")
    listed = {line.split("\t")[1]: line.split()[1] for line in git("ls-files", "-s").splitlines()}
    assert listed == {path: entry.oid for path, entry in hub.repo("ada/sweeps").entries().items()}
    from gpupod_rehearsal.hub.trees import directories

    assert directories(hub.repo("ada/sweeps").entries())[""] == git("write-tree").strip()


async def test_an_unchanged_cell_makes_no_second_commit(hub, client, tmp_path: Path):
    (tmp_path / "m.pt").write_bytes(NOISE)
    heads = await client(
        """
ops = lambda: [add("cells/c1/m.pt", "m.pt"), add("cells/c1/e.json", b"{}")]
out([commit(ops()).oid, commit(ops()).oid])
"""
    )
    assert heads[0] == heads[1]
    assert len(hub.repo("ada/sweeps").commits()) == 2


async def test_files_that_gitignore_names_are_dropped_without_a_word(hub, client):
    hub.repo("ada/sweeps").put({".gitignore": b"*.log\n!keep.log\ncache/\n"})
    await client(
        """
names = ["c/a.log", "c/keep.log", "c/cache/x.json", "c/y.json"]
out(commit([add(name, name.encode()) for name in names]).oid)
"""
    )
    assert sorted(hub.repo("ada/sweeps").files("c/")) == ["c/keep.log", "c/y.json"]


async def test_a_listing_of_more_than_a_page_is_complete_for_the_client(hub, client):
    hub.repo("ada/sweeps").put({f"cells/c1/part {n:04}.json": b"x" for n in range(2300)})
    listed = await client(
        """
out([len([f for f in api.list_repo_tree("ada/sweeps", "cells/c1", recursive=True, repo_type="dataset")]),
     attempt(lambda: list(api.list_repo_tree("ada/sweeps", "cells/none", repo_type="dataset")))[:2],
     [f.path for f in
      api.get_paths_info("ada/sweeps", ["cells/c1/part 0007.json", "cells/none"], repo_type="dataset")]])
"""
    )
    assert listed == [2300, ["RemoteEntryNotFoundError", 404], ["cells/c1/part 0007.json"]]
    assert operations(hub, "tree") == ["tree"] * 4


async def test_who_may_see_and_write_what(hub, client):
    hub.create_repo("ada/secret", private=True)
    hub.create_repo("lab/shared", private=True)
    code = """
out([attempt(lambda: api.repo_info("ada/secret", repo_type="dataset"))[:2],
     attempt(lambda: api.auth_check("ada/sweeps", repo_type="dataset", write=True))[:2],
     attempt(lambda: commit([add("x.json", b"1")]))[:2],
     attempt(lambda: api.repo_info("lab/shared", repo_type="dataset"))[:2],
     attempt(lambda: api.create_repo("lab/other", repo_type="dataset"))[:2],
     attempt(lambda: api.whoami())[:2]])
"""
    landed = ["landed", None]
    refused = ["HfHubHTTPError", 403]
    hidden = ["RepositoryNotFoundError", 404]
    assert await client(code, token=BOB) == [hidden, refused, refused, landed, refused, landed]
    assert await client(code, token=ADA_READS) == [landed, refused, refused, landed, refused, landed]
    assert await client(code) == [landed] * 6
    anonymous = await client(code, token=None)
    assert anonymous[0] == ["RepositoryNotFoundError", 401]
    assert anonymous[2][1] == 401
    wrong = await client(code, token="hf_unknown")
    assert [status for _, status in wrong] == [401] * 6


async def test_repositories_and_branches_come_and_go(hub, client):
    found = await client(
        """
url = api.create_repo("ada/new", repo_type="dataset", private=True)
again = api.create_repo("ada/new", repo_type="dataset", exist_ok=True)
api.create_branch("ada/new", branch="runs/one", repo_type="dataset")
commit([add("x.json", b"1")], repo="ada/new", revision="runs/one")
on_main = api.file_exists("ada/new", "x.json", repo_type="dataset")
on_branch = api.file_exists("ada/new", "x.json", repo_type="dataset", revision="runs/one")
names = sorted(b.name for b in api.list_repo_refs("ada/new", repo_type="dataset").branches)
api.delete_branch("ada/new", branch="runs/one", repo_type="dataset")
api.delete_repo("ada/new", repo_type="dataset")
out([str(url) == str(again), on_main, on_branch, names, api.repo_exists("ada/new", repo_type="dataset")])
"""
    )
    assert found == [True, False, True, ["main", "runs/one"], False]


async def test_delete_and_copy_operations(hub, client):
    hub.repo("ada/sweeps").put({"old/a.json": b"1", "old/b.json": b"2", "keep.bin": NOISE})
    await client(
        """
commit([CommitOperationDelete("old/"), CommitOperationCopy("keep.bin", "copied.bin")])
out(None)
"""
    )
    files = hub.repo("ada/sweeps").files()
    assert files.pop(".gitattributes")
    assert files == {"keep.bin": NOISE, "copied.bin": NOISE}


async def test_upload_in_parts(hub, client, tmp_path: Path):
    hub.limits = replace(hub.limits, multipart_bytes=100_000, multipart_chunk_bytes=64_000)
    (tmp_path / "m.pt").write_bytes(NOISE)
    await client('out(commit([add("m.pt", "m.pt")]).oid)')
    assert hub.repo("ada/sweeps").read("m.pt") == NOISE
    assert len(operations(hub, "lfs_put")) == 7


async def test_everything_is_there_after_a_restart(tmp_path: Path, clock: SteppedClock):
    async with HubSimulator(workdir=tmp_path, clock=clock) as hub:
        repo = hub.create_repo("ada/sweeps", private=True)
        repo.put({"a.json": b"1", "b.pt": NOISE})
        repo.put({"c.json": b"3"}, delete=["a.json"])
        before = repo.files(), [commit.oid for commit in repo.commits()]
    async with HubSimulator(workdir=tmp_path, clock=clock) as hub:
        repo = hub.repo("ada/sweeps")
        assert (repo.files(), [commit.oid for commit in repo.commits()]) == before
        assert [repository.private for repository in hub.state.registry] == [True]


async def test_the_client_s_own_folder_upload_splits_and_its_checksums_hold(hub, client, tmp_path: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(300):
        (folder / f"{number}.json").write_text(str(number))
    (folder / "m.pt").write_bytes(NOISE)
    found = await client(
        """
api.upload_folder(repo_id="ada/sweeps", repo_type="dataset", folder_path="folder", commit_message="cell")
check = api.verify_repo_checksums("ada/sweeps", repo_type="dataset", local_dir="folder")
out([check.checked_count, list(check.mismatches)])
""",
        xet=True,
    )
    assert found == [301, []]
    files = hub.repo("ada/sweeps").files()
    assert len(files) == 302
    assert files["m.pt"] == NOISE
    # Why cells are committed with create_commit: this call makes several commits of one folder.
    assert hub.repo("ada/sweeps").commits()[0].title == "cell (part 2)"
