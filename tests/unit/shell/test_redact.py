from __future__ import annotations

import pytest

from gpupod_operator.shell.keys import generate_key_pair
from gpupod_operator.shell.logs import logs_text
from gpupod_operator.shell.redact import redact, without

SECRET = "AbCdEf0123456789xyz"


@pytest.mark.parametrize(
    "text",
    [
        f"login with hf_{SECRET} now",
        f"key rpa_{SECRET}",
        f"sk-{SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}==",
        f"https://user:{SECRET}@host/x",
        f"HF_TOKEN={SECRET}",
        f'{{"api_key": "{SECRET}"}}',
        f"WANDB_API_KEY: {SECRET}",
        f"password='{SECRET}'",
        generate_key_pair()[0] + SECRET[:0],
    ],
)
def test_credentials_are_removed(text: str) -> None:
    shown = redact(f"before {text}\nafter")
    assert SECRET not in shown
    assert "PRIVATE KEY-----\n" not in shown
    assert "(removed)" in shown
    assert shown.startswith("before ")


def test_a_private_key_that_is_cut_off_is_removed_to_its_end() -> None:
    private = generate_key_pair()[0]
    assert redact(private[: len(private) // 2]).strip() == "(removed)"


@pytest.mark.parametrize(
    "text",
    [
        "loss 0.25 at step 7",
        "tokenizer=llama",
        "from huggingface_hub import hf_hub_download",
        "HF_HUB_ENABLE_HF_TRANSFER is set but hf_transfer is not installed",
        "tokens: 128",
        "max_new_token=512",
        "https://huggingface.co/datasets/ada/sweeps",
    ],
)
def test_ordinary_lines_stay_as_they_are(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("limit", [0, 10, 40, 100, 1000])
def test_stored_logs_never_exceed_their_bound_and_stay_valid_text(limit: int) -> None:
    text = logs_text("zeile äöü 🚀\n".encode() * 100, limit)
    assert len(text.encode()) <= limit
    assert "�" not in text


def test_known_values_are_taken_out_whatever_they_look_like_and_short_words_stay():
    text = "login with swordfish-42 as root; swordfish-42-b too"
    assert without(text, ["swordfish-42", "root", "swordfish-42-b", " "]) == (
        "login with (removed) as root; (removed) too"
    )
