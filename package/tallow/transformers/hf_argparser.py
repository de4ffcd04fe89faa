"""HfArgumentParser: arguments of a command line as instances of dataclasses.

Source:  transformers 5.24, `HfArgumentParser`
"""

from __future__ import annotations

import dataclasses
import json
import sys
import typing
from argparse import SUPPRESS, ArgumentDefaultsHelpFormatter, ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union

from tallow.errors import ArgumentError, MissingPackageError

WORDS = {**dict.fromkeys(("yes", "true", "t", "y", "1"), True), **dict.fromkeys(("no", "false", "f", "n", "0"), False)}


def HfArg(
    *,
    aliases: str | list[str] | None = None,
    help: str | None = None,
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    metadata: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Any:
    """Return a field of a dataclass for a HfArgumentParser.

    Args:
        aliases: further options, such as "-e".
        kwargs: of `dataclasses.field`.
    """
    notes = {"aliases": aliases, "help": help}
    notes = {**(metadata or {}), **{name: value for name, value in notes.items() if value is not None}}
    return dataclasses.field(default=default, default_factory=default_factory, metadata=notes, **kwargs)


class HfArgumentParser(ArgumentParser):
    """Makes an option of each field of dataclasses: `--learning_rate`, and `--learning-rate`.

    `help`, `choices` and `aliases` are in the metadata of a field. A field of bool is a switch; one that is True by
    default has `--no_` before its name, too.

    Args:
        dataclass_types: a dataclass, or several.
        kwargs: of ArgumentParser.

    Raises:  ArgumentError for a field whose type is a union of several that are not strings
    """

    def __init__(self, dataclass_types: Any = None, **kwargs: Any) -> None:
        super().__init__(**{"formatter_class": ArgumentDefaultsHelpFormatter, **kwargs})
        several = isinstance(dataclass_types, Iterable) and not isinstance(dataclass_types, type)
        self.dataclass_types: list[Any] = list(dataclass_types) if several else [dataclass_types]
        self.dataclass_types = [each for each in self.dataclass_types if each is not None]
        for each in self.dataclass_types:
            title = getattr(each, "_argument_group_name", None)
            group = self if title is None else self.add_argument_group(title)
            hints = typing.get_type_hints(each)
            for field in dataclasses.fields(each):
                if field.init:
                    _add_option(group, field, hints[field.name])
            for name in getattr(each, "other_names", ()):
                group.add_argument(*_options(name), nargs="?", const=True, default=SUPPRESS, type=_value, help=SUPPRESS)

    def parse_args_into_dataclasses(
        self,
        args: list[str] | None = None,
        return_remaining_strings: bool = False,
        look_for_args_file: bool = True,
        args_filename: str | None = None,
        args_file_flag: str | None = None,
    ) -> tuple[Any, ...]:
        """Return an instance of each dataclass, then a namespace of other arguments, if there are some.

        Args:
            args: None means those of the program.
            return_remaining_strings: add a list of what is no argument, in place of an error.
            look_for_args_file: read arguments from the file with the name of the program that ends in `.args`.
            args_filename: the file in its place.
            args_file_flag: an option that names such files.

        Raises:  ArgumentError for what is no argument; SystemExit as `parse_args`; OSError
        """
        files = [Path(args_filename)] if args_filename else []
        if look_for_args_file and not files and sys.argv and sys.argv[0]:  # a notebook may have no name
            files.append(Path(sys.argv[0]).with_suffix(".args"))
        args = sys.argv[1:] if args is None else args
        if args_file_flag:
            finder = ArgumentParser(add_help=False)
            finder.add_argument(args_file_flag, dest="files", action="append", default=[])
            found, args = finder.parse_known_args(args)
            files += map(Path, found.files)
        words = [word for file in files if file.exists() for word in file.read_text().split()]
        namespace, rest = self.parse_known_args([*words, *args])
        made = []
        for each in self.dataclass_types:
            defaults = {field.name: field.default for field in dataclasses.fields(each)}
            given = {name: vars(namespace).pop(name) for name in _names(each) & vars(namespace).keys()}
            # A default would take the place of an argument by another name.
            made.append(
                each(**{name: value for name, value in given.items() if value is not defaults.get(name, given)})
            )
        if return_remaining_strings:
            return (*made, *([namespace] if vars(namespace) else []), rest)
        if rest:
            raise ArgumentError(f"Some specified arguments are not used by the HfArgumentParser: {rest}")
        return (*made, *([namespace] if vars(namespace) else []))

    def parse_dict(self, args: Mapping[str, Any], allow_extra_keys: bool = False) -> tuple[Any, ...]:
        """Return an instance of each dataclass, from the values of a dictionary.

        Raises:  ArgumentError for keys that are no fields, unless `allow_extra_keys`
        """
        unknown = sorted(args.keys() - set().union(*map(_names, self.dataclass_types)))
        if unknown and not allow_extra_keys:
            raise ArgumentError(f"Some keys are not used by the HfArgumentParser: {unknown}")
        return tuple(
            each(**{name: value for name, value in args.items() if name in _names(each)})
            for each in self.dataclass_types
        )

    def parse_json_file(self, json_file: str | Path, allow_extra_keys: bool = False) -> tuple[Any, ...]:
        """As `parse_dict`, from a file.  Raises: OSError, ValueError; as `parse_dict`"""
        return self.parse_dict(json.loads(Path(json_file).read_text(encoding="utf-8")), allow_extra_keys)

    def parse_yaml_file(self, yaml_file: str | Path, allow_extra_keys: bool = False) -> tuple[Any, ...]:
        """As `parse_dict`, from a file of YAML.

        Raises:  MissingPackageError without pyyaml; OSError, yaml.YAMLError; as `parse_dict`
        """
        try:
            import yaml  # huggingface_hub requires it
        except ImportError as error:
            raise MissingPackageError("yaml", "parse_yaml_file", "hub") from error
        return self.parse_dict(yaml.safe_load(Path(yaml_file).read_text(encoding="utf-8")), allow_extra_keys)


def _names(dataclass: Any) -> set[str]:
    fields = {field.name for field in dataclasses.fields(dataclass) if field.init}
    return fields | set(getattr(dataclass, "other_names", ()))


def _options(name: str) -> list[str]:
    return list(dict.fromkeys((f"--{name}", f"--{name.replace('_', '-')}")))


def _add_option(group: Any, field: dataclasses.Field[Any], hint: Any) -> None:
    """Add the option of a field."""
    options: dict[str, Any] = dict(field.metadata)
    aliases = options.pop("aliases", [])
    names = [*_options(field.name), *([aliases] if isinstance(aliases, str) else aliases)]
    if field.default is not dataclasses.MISSING:
        options["default"] = field.default
    elif field.default_factory is not dataclasses.MISSING:
        options["default"] = field.default_factory()
    elif hint is not bool:
        options["required"] = True
    hint, is_optional = _plain_type(field.name, hint)
    origin = typing.get_origin(hint) or hint
    if origin is Literal or (isinstance(origin, type) and issubclass(origin, Enum)):
        options["choices"] = list(typing.get_args(hint)) or [each.value for each in hint]
        words = {str(choice): choice for choice in options["choices"]}
        options["type"] = lambda text: words.get(text, text)
    elif origin is bool:
        options["type"] = _switch
        if not is_optional or field.default not in (None, dataclasses.MISSING):
            options |= {"default": options.get("default", False), "nargs": "?", "const": True}
    elif origin is list:
        options |= {"type": (*typing.get_args(hint), str)[0], "nargs": "+"}
    else:
        options["type"] = str if hint is Any else origin
    group.add_argument(*names, **options)
    if origin is bool and field.default is True:
        no = [f"--no_{field.name}", f"--no-{field.name.replace('_', '-')}"]
        group.add_argument(*no, action="store_false", dest=field.name, default=False, help=options.get("help"))


def _plain_type(name: str, hint: Any) -> tuple[Any, bool]:
    """Return the one type of a hint that a command line reads, and whether None is possible.  Raises: ArgumentError"""
    if typing.get_origin(hint) not in (Union, UnionType):
        return hint, False
    members = [each for each in typing.get_args(hint) if each is not type(None)]
    is_optional = len(members) < len(typing.get_args(hint))
    if len(members) > 1 and str in members:
        members = [str] if is_optional else [each for each in members if each is not str]
    if len(members) != 1:
        raise ArgumentError(f"field {name!r} has the type {hint}", hint="let it be one type, or that type and None")
    return members[0], is_optional


def _switch(text: str | bool) -> bool:
    if isinstance(text, bool):
        return text
    if text.lower() not in WORDS:
        raise ArgumentTypeError(f"{text!r:.80} is neither true nor false")
    return WORDS[text.lower()]


def _value(text: str) -> Any:
    """Return the value of an argument whose type is not known: a number, true or false, JSON, or the text."""
    try:
        return json.loads(text.lower() if text.lower() in ("true", "false", "none", "null") else text)
    except ValueError:
        return text
