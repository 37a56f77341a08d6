"""A host: one folder of run files and one supervision tree in one process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from freehold.actors.aside import Gone as Left
from freehold.actors.aside import aside
from freehold.actors.deadline import Seconds, check_deadline, exceeded, seconds
from freehold.actors.envelope import Lane
from freehold.actors.hosts import HOSTS
from freehold.actors.leases import Lease
from freehold.actors.lines import Lines
from freehold.actors.patience import when_passers_by_have_gone, when_readers_have_gone
from freehold.actors.ref import ActorRef
from freehold.actors.registrar import Gone
from freehold.actors.remote import Remote
from freehold.actors.route import Route
from freehold.actors.runs import Runs
from freehold.actors.seat import PinBox
from freehold.actors.tree import Node
from freehold.handle import Handle
from freehold.hosts import LivingHost, living_hosts
from freehold.info import RunInfo
from freehold.roll import roll
from freehold.run import Run
from freehold.schema import lifecycle
from freehold.schema.errors import Error, OwnedElsewhere, Refused, RunExists, RunNotFound, Unavailable, ValueRefused
from freehold.schema.ids import FILE_SUFFIX, check_project
from freehold.schema.limits import ASK_TIMEOUT_S, CLOSE_TIMEOUT_S, PROPS_BYTES_MAX, TREE_TIMEOUT_S
from freehold.schema.messages import Retire
from freehold.schema.secrets import SecretFilter
from freehold.schema.values import Value, canonical
from freehold.storage import forks
from freehold.storage.clock import Clock
from freehold.storage.create import create, uncreate
from freehold.storage.delete import delete
from freehold.storage.disk import DISK, Disk
from freehold.storage.filesystem import check_filesystem
from freehold.storage.holder import name_holder
from freehold.storage.known import known_as
from freehold.storage.path import RunPath, beneath, resolve, resolve_root
from freehold.storage.platform import check_platform, no_descriptors
from freehold.view import RunView

StrPath = str | PathLike[str]
SecretShape = Literal["refuse", "mask", "allow"]
_TRIES_MAX = 20


class Host:
    """Owns runs in one folder, and gives out leases on them. One a root and process; made by `freehold.open`."""

    def __init__(
        self, root: str, secrets: SecretFilter, *, timeout: float, idle_timeout: float, any_filesystem: bool, disk: Disk = DISK
    ) -> None:
        self.root = Path(root)
        """The folder of runs, its links resolved."""
        self._secrets = secrets
        self._any_filesystem = any_filesystem
        self._timeout = timeout
        self._lines = Lines()
        self._clock = Clock()
        self._disk = disk
        self._closed = False
        self._forked = False
        self._interrupted = False
        self.is_left = False
        HOSTS.enter(root, self)
        forks.watch(self)
        try:
            options = {"timeout": timeout, "idle_timeout": idle_timeout}
            self._runs = Runs(root, self._clock, **options, vfs=disk.vfs, registers=disk is DISK, secrets=secrets)
        except BaseException:
            HOSTS.leave(root, self)
            raise

    def create(self, run_id: str, *, props: Mapping[str, Value] | None = None, project: str = "") -> Run:
        """Create a run and return a lease on it. The folder is made if it is missing.

        Raises RunExists, and Refused for a wrong id, property or project; then nothing was created.
        """
        path, text, project = self._wanted(run_id, props, project)
        return aside(lambda gone: self._create(path, text, project, gone), Run.close)

    def open(self, run_id: str) -> Run:
        """Own the run, if this host does not yet, and return a lease on it.

        Another process that owns it is waited for a quarter of a second: it may do so for one call of a handle.

        Raises RunNotFound; OwnedElsewhere with its holder; Quarantined; Damaged or Refused of a file that is no healthy
        run, which was left unchanged.
        """
        self._check_open()
        path = resolve(self.root, run_id)
        return aside(lambda _gone: self._lease(path), Run.close)

    def ensure(self, run_id: str, *, props: Mapping[str, Value] | None = None, project: str = "") -> Run:
        """Open the run if it exists with the same properties and project, create it if it does not exist.

        Raises RunExists, naming the fields that differ, and what `create` and `open` raise.
        """
        path, text, project = self._wanted(run_id, props, project)
        return aside(lambda gone: self._ensure(path, text, project, gone), Run.close)

    def _ensure(self, path: RunPath, text: str, project: str, gone: Left) -> Run:
        for _ in range(_TRIES_MAX):
            try:
                run = self._lease(path)
            except RunNotFound:
                try:
                    return self._create(path, text, project, gone)
                except RunExists:
                    continue  # somebody else has just created it: join it
            try:
                self._check_equal(run, text, project)
            except BaseException:
                run.close()
                raise
            return run
        raise _changing(path)

    def view(self, run_id: str) -> RunView:
        """Return a view of the run. It owns nothing and creates nothing; a run that is not there has an empty journal."""
        self._check_open()
        return RunView(resolve(self.root, run_id), any_filesystem=self._any_filesystem)

    def handle(self, run_id: str) -> Handle:
        """Return a handle on the run: it talks to whoever owns it, also in another process, and owns nothing itself.

        Whether the run is there, its calls say. Raises Refused (bad_run_id, host_closed).
        """
        self._check_open()
        path = resolve(self.root, run_id)
        remote = Remote(path, str(self.root), timeout=self._timeout, any_filesystem=self._any_filesystem, lines=self._lines)
        return Handle(Route(path, self._take, remote, self._check_open), self._secrets, any_filesystem=self._any_filesystem)

    def runs(self, *, status: str | None = None, props: Mapping[str, Value] | None = None, check: bool = False) -> Iterator[RunInfo]:
        """Yield every run of the folder in the order of their ids, or those of one *status* and with these *props*.

        A run file that has not been written to since it was looked at last is not looked at again, unless you say *check*. A file
        that cannot be read is yielded with its `error` beside the good ones. Raises Refused (bad_option, host_closed), ValueRefused.
        """
        self._check_open()
        if status is not None and (not isinstance(status, str) or status not in tuple(lifecycle.Status)):
            raise Refused(f"a status is one of {', '.join(lifecycle.Status)}; nothing was changed", code="bad_option")
        wanted = {name: canonical(value) for name, value in _props(props).items()}
        return self._listed(status, wanted, check=check)

    def _listed(self, status: str | None, wanted: Mapping[str, str], *, check: bool) -> Iterator[RunInfo]:
        for info in roll(self._runs, self.files, str(self.root), any_filesystem=self._any_filesystem, check=check):
            held = all(name in info.props and canonical(info.props[name]) == value for name, value in wanted.items())
            if info.error is not None or (held and status in (None, info.status)):
                yield info

    def files(self) -> list[RunPath]:
        """Return the path of each file that is named like a run, links and doubles left out, in the order of their ids.

        Raises Refused (no_permission) if the folder may not be read, Unavailable (no_descriptors).
        """
        try:
            root = resolve_root(self.root)
            with os.scandir(root) as entries:
                names = [(entry.name, entry.is_symlink()) for entry in entries if entry.name.endswith(FILE_SUFFIX)]
        except (FileNotFoundError, NotADirectoryError):
            return []
        except PermissionError:
            raise Refused(f"the folder {self.root} may not be read by this user; nothing was changed", code="no_permission") from None
        except OSError as error:
            raise no_descriptors(error) or error from None
        found: set[RunPath] = set()
        for name, is_link in names:
            run_id = name.removesuffix(FILE_SUFFIX)
            try:
                path = resolve(root, run_id) if is_link else beneath(root, run_id)
            except Refused:
                continue  # no run id can name it
            if not is_link or path.folder != root or path.id == run_id:
                found.add(path)
        return sorted(found, key=lambda path: (path.id, path.folder))

    def delete(self, run_id: str) -> None:
        """Delete a run for good: its file and what lies beside it.

        Raises RunNotFound; Refused (run_in_use) while leases on it are open; OwnedElsewhere; Refused (not_a_run) of a
        file that is not ours.
        """
        self._check_open()
        path = resolve(self.root, run_id)
        aside(lambda _gone: self._delete(path))

    def _delete(self, path: RunPath) -> None:
        if (ref := self._runs.owned(path)) is not None:
            try:
                ref.call(Retire(), None, lane=Lane.SYSTEM)
            except Unavailable as error:
                if error.code not in ("lease_lost", "stopping", "quarantined"):
                    raise
            self._runs.stop_child(ref.name)
        try:
            when_readers_have_gone(lambda: delete(path, self._clock, self._disk))
        except OwnedElsewhere as error:
            raise name_holder(error, path) from None
        self._runs.tell_registrar(Gone((known_as(path, str(self.root)),)))

    def hosts(self, timeout: Seconds = TREE_TIMEOUT_S) -> list[LivingHost]:
        """Return the hosts that live on the folder, in whatever process, the eldest first, each with its tree or why there is none.

        One is there from the first run that it owns on, this one too. All are asked side by side, and one that has not answered within
        *timeout* has that for its error. Raises Refused (host_closed, bad_option, no_permission; not_a_host_file,
        host_file_version), Damaged (host_file_damaged), Unavailable of a host file that cannot be read now.
        """
        self._check_open()
        return living_hosts(str(self.root), seconds(timeout))

    def tree(self) -> Node:
        """Return a picture of the supervision tree; works while an actor is stuck. `print` shows it as text."""
        return self._runs.tree()

    def close(self, timeout: Seconds = CLOSE_TIMEOUT_S) -> None:
        """Stop every run: finish what waits, give the files back, and lose the leases that are still open.

        Closing twice is fine. Raises Unavailable (still_stopping) naming the runs that did not stop within *timeout*;
        InsideTransaction in a turn or transaction of one of its runs, and then nothing was closed. What takes longer than a
        second is named in the log. Interrupted, it goes on by itself, and a second call waits for it; the end of the program
        does not, if it was an interrupt that had ended the block of this host.
        """
        if self._forked:  # a forked child holds nothing
            return
        allowed = seconds(timeout)
        self._runs.check_outside()
        try:
            aside(lambda _gone: self._close(allowed), bounded=False)
        except Error:
            raise
        except BaseException:
            if self._interrupted:
                self.leave()
            raise

    def leave(self) -> None:
        """Wait for this host no more, also not at the end of the program: its end was interrupted again."""
        self.is_left = True
        self._runs.leave()

    def _close(self, allowed: float) -> None:
        self._closed = True
        self._lines.close()
        try:
            self._runs.stop(allowed)
        finally:
            HOSTS.leave(str(self.root), self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        self._interrupted = kind is not None and not issubclass(kind, Exception)
        self.close()

    def __repr__(self) -> str:
        return f"<Host {self.root}>"

    def forked(self) -> None:
        """In a forked child: refuse at once, before anything is created."""
        self._forked = True

    def _check_open(self) -> None:
        if self._forked:
            raise forks.forked_process()
        if self._closed:
            raise Refused("this host is closed; open it again. Nothing was changed", code="host_closed")

    def _wanted(self, run_id: str, props: Mapping[str, Value] | None, project: str) -> tuple[RunPath, str, str]:
        self._check_open()
        path = resolve(self.root, run_id)
        self._secrets.check_text(path.id, "a run id")
        project = check_project(project)
        self._secrets.check_text(project, "a project")
        return path, canonical(self._secrets.seal(_props(props), bytes_max=PROPS_BYTES_MAX).data), project

    def _create(self, path: RunPath, props: str, project: str, gone: Left) -> Run:
        check_deadline()
        self._check_open()
        pin = create(path, project=project, props=props, clock=self._clock, any_filesystem=self._any_filesystem, disk=self._disk)
        box = PinBox(pin)
        try:
            if gone():
                raise exceeded("no")
            return self._lease(path, box)
        except BaseException as error:
            if (unused := box.take()) is not None:
                uncreate(unused, self._disk)  # nobody has owned it: it is as if it had never been
            elif isinstance(error, Error) and error.executed == "no":
                error.executed = "yes"
                error.args = (f"the run was created, but there is no lease on it: {error}",)
            raise

    def _take(self, path: RunPath, box: PinBox | None = None) -> tuple[ActorRef[Any], Lease]:
        if box is None:
            check_filesystem(path.folder, any_filesystem=self._any_filesystem)
        try:
            return self._runs.lease(path, box)
        except OwnedElsewhere as error:
            raise name_holder(error, path) from None

    def _lease(self, path: RunPath, box: PinBox | None = None) -> Run:
        ref, lease = when_passers_by_have_gone(lambda: self._take(path, box))
        if box is not None and (unused := box.take()) is not None:
            unused.close()  # somebody was quicker to own it
        return Run(path, ref, lease, self._secrets, any_filesystem=self._any_filesystem)

    def _check_equal(self, run: Run, text: str, project: str) -> None:
        info = run.info
        found = {"props": canonical(dict(info.props)), "project": info.project}
        different = [name for name, wanted in (("props", text), ("project", project)) if found[name] != wanted]
        if different:
            raise RunExists(
                f"{run.id} exists with other {' and '.join(different)}; open() takes it as it is. It was left unchanged",
                run=run.id,
                fields=different,
            )


def open(  # noqa: A001 - the field's own word, as in pathlib
    root: StrPath | None = None,
    *,
    timeout: Seconds = ASK_TIMEOUT_S,
    idle_timeout: Seconds = 60.0,
    secrets: Mapping[str, str] | None = None,
    on_secret_shape: SecretShape = "refuse",  # noqa: S107 - no password: a mode
    any_filesystem: bool = False,
) -> Host:
    """Open a host on the folder *root* ($FREEHOLD_ROOT, else ./runs). Nothing is created before the first run is.

    *timeout* bounds every call; a run without leases is given back after *idle_timeout*. Declared *secrets* (name to
    value) are refused wherever they would be stored; what has the shape of one is treated as *on_secret_shape* says.
    Raises HostOpen when this process has a host on the same root, UnsupportedPlatform elsewhere than on Linux, Refused
    (bad_root, bad_option, network_filesystem; forked_process in a child that was forked while run files were open).
    """
    return open_on(
        DISK,
        root,
        timeout=timeout,
        idle_timeout=idle_timeout,
        secrets=secrets,
        on_secret_shape=on_secret_shape,
        any_filesystem=any_filesystem,
    )


def open_on(
    disk: Disk,
    root: StrPath | None = None,
    *,
    timeout: Seconds = ASK_TIMEOUT_S,
    idle_timeout: Seconds = 60.0,
    secrets: Mapping[str, str] | None = None,
    on_secret_shape: SecretShape = "refuse",  # noqa: S107 - no password: a mode
    any_filesystem: bool = False,
) -> Host:
    """Open a host as `open` does, on another disk than the machine's own."""
    check_platform()
    forks.check_sqlite_is_whole()
    if not isinstance(any_filesystem, bool):
        raise Refused("any_filesystem is True or False; nothing was opened", code="bad_option")
    folder = resolve_root(root if root is not None else os.environ.get("FREEHOLD_ROOT") or "runs")
    if os.path.lexists(folder) and not Path(folder).is_dir():
        raise Refused("the root is not a folder; nothing was opened or created", code="bad_root")
    check_filesystem(folder, any_filesystem=any_filesystem)
    options = {"timeout": seconds(timeout), "idle_timeout": seconds(idle_timeout)}
    filters = SecretFilter(secrets, on_secret_shape)
    return aside(lambda _gone: Host(folder, filters, **options, any_filesystem=any_filesystem, disk=disk), Host.close)


def _props(props: Mapping[str, Value] | None) -> dict[str, Value]:
    if props is not None and not isinstance(props, Mapping):
        raise ValueRefused("props is a mapping of names to values; nothing was changed", path="$", type=type(props).__name__)
    return dict(props or {})


def _changing(path: RunPath) -> Unavailable:
    return Unavailable(f"{path.file} keeps changing hands just now; nothing was changed", code="changed_while_reading")
