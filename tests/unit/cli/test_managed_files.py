"""A person's own files: only our part changes, in one step, and the rest is as it was."""

import json
import threading

import pytest

from gpupod_operator.cli.plugin.failure import Failed
from gpupod_operator.cli.plugin.local_files import change, differs
from gpupod_operator.cli.plugin.managed import BEGIN, END, OURS, with_block, with_servers
from gpupod_operator.render.rows import Row
from gpupod_operator.render.ssh_config import DEFAULT_PATHS

X = Row("x", "10.0.0.1", 4022, 1, "H100", "x", pod_id="p1")
Y = Row("y.1", "10.0.0.2", 4023, 8, "A100", "y", pod_id="p2")


def test_a_first_block_goes_to_the_end_so_that_options_for_all_hosts_stay_on_top():
    text = with_block("ServerAliveInterval 5\nHost a\n  User b", [X], DEFAULT_PATHS)
    assert text.startswith(f"ServerAliveInterval 5\nHost a\n  User b\n\n{BEGIN}\n# x - 1x H100 (pod p1)\nHost x\n")
    assert text.endswith(f"{END}\n")
    assert with_block("Host a\n", [], DEFAULT_PATHS) == "Host a\n"


def test_the_block_is_replaced_in_its_place_and_nothing_around_it_moves():
    old = f"Host a\r\n\n{BEGIN}\nHost dead\n{END}\n# mine\nHost z\n"
    text = with_block(old, [Y], DEFAULT_PATHS)
    assert text.startswith(f"Host a\r\n\n{BEGIN}\n") and text.endswith(f"{END}\n# mine\nHost z\n")
    assert "dead" not in text and "Host y.1\n" in text
    assert with_block(text, [Y], DEFAULT_PATHS) == text
    assert with_block(text, [], DEFAULT_PATHS) == f"Host a\r\n\n{BEGIN}\n{END}\n# mine\nHost z\n"


@pytest.mark.parametrize("text", [f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{END}\n{BEGIN}\n{END}\n"])
def test_markers_that_do_not_pair_up_leave_the_file_alone(text, tmp_path):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(Failed, match="is left alone"):
        change(path, lambda before: with_block(before, [X], DEFAULT_PATHS), mode=0o600)
    assert path.read_text() == text


def mcp(env):
    return json.dumps({"other": [1], "mcpServers": {"a": {}, "ssh": {"command": "srv", "env": env}}})


def test_servers_of_pods_that_went_go_and_servers_of_the_person_stay():
    both = with_servers(mcp({"SSH_SERVER_HOME_HOST": "h", "TOKEN": "t"}), [X, Y], DEFAULT_PATHS)
    env = json.loads(both)["mcpServers"]["ssh"]["env"]
    assert (env["SSH_SERVER_X_PORT"], env["SSH_SERVER_Y_1_HOST"], env[OURS]) == (
        "4022",
        "10.0.0.2",
        "SSH_SERVER_X SSH_SERVER_Y_1",
    )
    one = json.loads(with_servers(both, [X], DEFAULT_PATHS))
    left = set(one["mcpServers"]["ssh"]["env"])
    assert not any(key.startswith("SSH_SERVER_Y_1") for key in left) and "SSH_SERVER_X_HOST" in left
    assert (one["other"], one["mcpServers"]["a"]) == ([1], {})
    none = json.loads(with_servers(both, [], DEFAULT_PATHS))
    assert none["mcpServers"]["ssh"]["env"] == {"SSH_SERVER_HOME_HOST": "h", "TOKEN": "t"}


def test_a_file_that_says_the_same_in_another_layout_is_as_it_was():
    text = with_servers(mcp({}), [X], DEFAULT_PATHS)
    compact = json.dumps(json.loads(text))
    assert with_servers(compact, [X], DEFAULT_PATHS) == compact


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"mcpServers": {}}', '{"mcpServers": {"ssh": {"env": []}}}'])
def test_what_is_no_mcp_file_with_our_server_is_refused(text):
    with pytest.raises(ValueError, match="it "):
        with_servers(text, [X], DEFAULT_PATHS)


def test_a_new_file_gets_the_mode_and_an_old_one_keeps_its_own(tmp_path):
    new, old = tmp_path / "new" / "config", tmp_path / "old"
    old.write_text("a")
    old.chmod(0o644)
    assert change(new, lambda _: "text", mode=0o600) and change(old, lambda _: "text", mode=0o600)
    assert (new.stat().st_mode & 0o777, old.stat().st_mode & 0o777) == (0o600, 0o644)
    assert new.parent.stat().st_mode & 0o777 == 0o700


def test_an_unchanged_file_is_not_written_and_an_empty_one_is_not_made(tmp_path):
    path = tmp_path / "file"
    path.write_text("same")
    before = path.stat().st_ino
    assert not change(path, lambda text: text, mode=0o600)
    assert path.stat().st_ino == before
    assert not change(tmp_path / "none", lambda _: "", mode=0o600)
    assert not (tmp_path / "none").exists() and not differs(tmp_path / "none", lambda _: "")


def test_a_linked_file_stays_a_link_and_bytes_of_others_come_back(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"# \xff\r\n")
    link.symlink_to(real)
    assert change(link, lambda text: text + "more\n", mode=0o600)
    assert link.is_symlink() and real.read_bytes() == b"# \xff\r\nmore\n"


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def broken(_: str) -> str:
        raise ValueError("no")

    with pytest.raises(Failed, match="file is left alone: no"):
        change(path, broken, mode=0o600)
    assert path.read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"file", ".file.gpupod.lock"}


def test_changes_at_once_take_turns_and_none_is_lost(tmp_path):
    path = tmp_path / "count"
    path.write_text("0")

    def add() -> None:
        for _ in range(25):
            change(path, lambda text: str(int(text) + 1), mode=0o600)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() == "100"
