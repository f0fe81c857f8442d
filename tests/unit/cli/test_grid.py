"""SweepCells from a grid."""

import pytest

from gpupod_operator.cli.plugin.grid import Grid, Templates, artifact, parameter, sweep_cells


def templates(**changes):
    given = {
        "cell": None,
        "done_file": "/w/{cell}/DONE",
        "artifacts": (artifact("evals=/w/{cell}/evals:a.json,b.json"),),
        "path": "{sweep}/{cell}",
        "repo": "o/r",
        "repo_type": "dataset",
        "revision": "main",
        "token": {"name": "hf", "key": "token"},
    }
    return Templates(**(given | changes))


def grid(*parameters: str, sweep: str = "s"):
    return Grid(sweep, "p", tuple(parameter(text) for text in parameters))


def test_every_point_of_the_product_is_a_cell_and_the_last_parameter_varies_fastest():
    made = sweep_cells(grid("lr=1e-4,3e-4", "seed=0,1"), templates())
    assert [cell["metadata"]["name"] for cell in made] == [
        "s-lr-1e-4-seed-0",
        "s-lr-1e-4-seed-1",
        "s-lr-3e-4-seed-0",
        "s-lr-3e-4-seed-1",
    ]
    spec = made[2]["spec"]
    assert spec["source"]["doneFile"] == "/w/lr-3e-4-seed-0/DONE"
    assert spec["source"]["artifacts"][0] == {
        "name": "evals",
        "path": "/w/lr-3e-4-seed-0/evals",
        "files": ["a.json", "b.json"],
    }
    assert spec["destination"]["path"] == "s/lr-3e-4-seed-0"


def test_templates_know_each_parameter_and_a_padded_number():
    made = sweep_cells(grid("seed=0,1"), templates(cell="run{i}", done_file="/w/{seed}/DONE"))
    assert [cell["metadata"]["name"] for cell in made] == ["s-run00", "s-run01"]
    assert made[1]["spec"]["source"]["doneFile"] == "/w/1/DONE"


def test_values_that_are_no_names_become_such():
    (cell,) = sweep_cells(grid("model=Org/Model_7B"), templates(cell="{model}"))
    assert cell["metadata"]["name"] == "s-org-model-7b"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cell": "same"}, "two cells would have the name 's-same'"),
        ({"done_file": "/w/DONE"}, "two cells would have the done file '/w/DONE'"),
        ({"path": "{sweep}"}, "two cells would have the destination path 's'"),
        ({"path": "{oops}"}, "{oops} is not known here; there are cell, i, seed, sweep"),
        ({"cell": "-" * 300 + "x" * 300 + "{seed}"}, "is no Kubernetes name"),
    ],
)
def test_what_would_collide_or_cannot_be_is_refused_before_anything_is_printed(changes, words):
    with pytest.raises(ValueError, match=words.replace("{", r"\{").replace("}", r"\}")):
        sweep_cells(grid("seed=0,1"), templates(**changes))


def test_globs_come_with_a_minimum_and_exact_files_without():
    assert artifact("t=/w/t:*.safetensors,*.json@3") == {
        "name": "t",
        "path": "/w/t",
        "include": ["*.safetensors", "*.json"],
        "minFiles": 3,
    }
    assert artifact("t=/w/t:*.bin")["minFiles"] == 1
    for wrong in ("t=/w/t:*.bin,a.json", "t=/w/t:a.json@2", "t=/w/t", "/w/t:a", "t=/w/t:*.bin@x"):
        with pytest.raises(ValueError, match="--artifact"):
            artifact(wrong)


@pytest.mark.parametrize("text", ["lr", "lr=", "lr=1,,2", "a-b=1", "cell=1", "seed=0,0"])
def test_a_parameter_is_a_name_and_different_values(text):
    with pytest.raises(ValueError, match="--param"):
        parameter(text)


def test_a_grid_that_is_surely_a_mistake_is_refused():
    many = ",".join(str(n) for n in range(101))
    with pytest.raises(ValueError, match="more than 10000 cells"):
        sweep_cells(grid(f"a={many}", f"b={many}"), templates())
