"""How a file is to be opened, in the words of Python's own `open`, and refused as it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OpenMode:
    """What a mode such as `r+b` asks for. Of `reads` and `writes` at least one is true."""

    reads: bool
    writes: bool
    appends: bool = False
    truncates: bool = False
    creates: bool = False
    """The file must not be there before: `x`."""
    is_text: bool = False

    @property
    def raw(self) -> str:
        """The mode as a file without a buffer says it."""
        letter = "x" if self.creates else "a" if self.appends else "r" if self.reads else "w"
        return f"{letter}b+" if self.reads and self.writes else f"{letter}b"


def parse_mode(
    mode: str, *, buffering: int = -1, encoding: str | None = None, errors: str | None = None, newline: str | None = None
) -> OpenMode:
    """Return what *mode* asks for. Raises what `open` raises: ValueError, and TypeError for what is no text."""
    if not isinstance(mode, str):
        raise TypeError(f"open() argument 'mode' must be str, not {type(mode).__name__}")
    letters = set(mode)
    if letters - set("axrwb+t") or len(mode) > len(letters):
        raise ValueError(f"invalid mode: {mode!r}")
    is_binary, is_text = "b" in letters, "t" in letters
    if is_binary and is_text:
        raise ValueError("can't have text and binary mode at once")
    if not letters & set("axrw"):
        raise ValueError("Must have exactly one of create/read/write/append mode and at most one plus")
    if len(letters & set("axrw")) > 1:
        raise ValueError("must have exactly one of create/read/write/append mode")
    if is_binary:
        for what, given in (("encoding", encoding), ("errors", errors), ("newline", newline)):
            if given is not None:
                raise ValueError(f"binary mode doesn't take {'an' if what[0] == 'e' else 'a'} {what} argument")
    elif buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    return OpenMode(
        reads=bool(letters & set("r+")),
        writes=bool(letters & set("axw+")),
        appends="a" in letters,
        truncates="w" in letters,
        creates="x" in letters,
        is_text=not is_binary,
    )
