"""What people may write where on the command line of the plugin."""

import pytest

from gpupod_operator.cli.plugin.app import hoist, main


def test_kubectl_s_flags_may_stand_anywhere_before_the_dashes():
    assert hoist(["why", "x", "-n", "lab", "--context=c"]) == ["--namespace", "lab", "--context", "c", "why", "x"]
    assert hoist(["ssh", "x", "--", "tail", "-n", "5"]) == ["ssh", "x", "--", "tail", "-n", "5"]


def test_cells_of_a_pod_need_no_verb_and_a_pod_may_be_called_like_one():
    assert hoist(["cells", "x", "-n", "lab"]) == ["--namespace", "lab", "cells", "list", "x"]
    assert hoist(["cells", "generate", "--pod", "x"]) == ["cells", "generate", "--pod", "x"]
    assert hoist(["cells", "list", "generate"]) == ["cells", "list", "generate"]
    assert hoist(["cells", "--help"]) == ["cells", "--help"]


@pytest.mark.parametrize("arguments", [["bogus"], ["why"], ["why", "x", "-n"], ["conf", "update", "x"]])
def test_a_mistake_on_the_command_line_is_one_line_and_exit_code_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_a_cluster_it_says_so_in_one_line(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["why", "x", "--kubeconfig", str(tmp_path / "missing")])
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (1, "")
    assert captured.err.startswith("kubectl gpupod: ") and captured.err.count("\n") == 1
