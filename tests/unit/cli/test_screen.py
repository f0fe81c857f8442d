"""Tables that people and programs read."""

from gpupod_operator.cli.plugin.screen import show_table


def test_texts_of_others_are_printed_as_they_are_and_never_cut(capsys):
    long = "x" * 300
    show_table(("A", "NOTE"), [("1", "[red]no[/red] [1] \\["), ("2", long)])
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["A", "NOTE"]
    assert first.rstrip().endswith("[red]no[/red] [1] \\[")
    assert second.rstrip().endswith(long)
