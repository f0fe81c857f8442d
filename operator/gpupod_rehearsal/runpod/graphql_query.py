"""A reader for the plain GraphQL that API clients send: nested fields with literal or variable arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|-?\d+(?:\.\d+)?|\.\.\.|[{}()\[\]:!$=@]')
_SKIP = re.compile(r"[\s,]+|#[^\n]*")


class QueryError(ValueError):
    """The query does not parse, or (`valid`) asks for something that does not exist."""

    def __init__(self, message: str, *, valid: bool = False) -> None:
        super().__init__(message)
        self.valid = valid


@dataclass(frozen=True, slots=True)
class Field:
    """One selected field with its arguments and the fields below it."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    children: tuple[Field, ...] = ()


def parse(query: str, variables: Mapping[str, Any]) -> tuple[Field, ...]:
    """The top fields of the query's one operation. Raises QueryError."""
    reader = _Reader(_tokens(query), variables)
    return reader.operation()


def _tokens(query: str) -> list[str]:
    found, at = [], 0
    while at < len(query):
        skip = _SKIP.match(query, at)
        if skip is not None:
            at = skip.end()
            continue
        token = _TOKEN.match(query, at)
        if token is None:
            raise QueryError(f"Syntax Error: Unexpected character: {query[at]!r}.")
        found.append(token[0])
        at = token.end()
    return found


class _Reader:
    def __init__(self, tokens: list[str], variables: Mapping[str, Any]) -> None:
        self._tokens = tokens
        self._variables = variables
        self._at = 0

    def operation(self) -> tuple[Field, ...]:
        while self._peek() != "{":
            if self._peek() == "(":
                self._skip_definitions()
            else:
                self._next()
        return self._selection()

    def _selection(self) -> tuple[Field, ...]:
        self._expect("{")
        fields = []
        while self._peek() != "}":
            name = self._next()
            arguments: dict[str, Any] = {}
            if self._peek() == "(":
                self._next()
                arguments = self._pairs(")")
            children = self._selection() if self._peek() == "{" else ()
            fields.append(Field(name, arguments, children))
        self._expect("}")
        return tuple(fields)

    def _pairs(self, end: str) -> dict[str, Any]:
        pairs = {}
        while self._peek() != end:
            name = self._next()
            self._expect(":")
            pairs[name] = self._value()
        self._expect(end)
        return pairs

    def _value(self) -> Any:
        token = self._next()
        if token == "{":
            return self._pairs("}")
        if token == "[":
            items = []
            while self._peek() != "]":
                items.append(self._value())
            self._expect("]")
            return items
        if token == "$":
            return self._variables.get(self._next())
        if token.startswith('"') or token in {"true", "false", "null"} or token.lstrip("-")[0].isdigit():
            return json.loads(token)
        return token

    def _skip_definitions(self) -> None:
        while self._next() != ")":
            continue

    def _peek(self) -> str:
        if self._at >= len(self._tokens):
            raise QueryError("Syntax Error: Unexpected <EOF>.")
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, wanted: str) -> None:
        got = self._next()
        if got != wanted:
            raise QueryError(f'Syntax Error: Expected "{wanted}", found "{got}".')
