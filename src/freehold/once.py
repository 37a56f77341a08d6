"""One call of `once`: whether its function has to run, that it runs alone, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from freehold.actors.deadline import exceeded, monotonic
from freehold.current import Inside, StepInfo, claim_inside
from freehold.publishing import refuse_awaitable
from freehold.returned import type_returned
from freehold.schema.errors import DeadlineExceeded, Error, NotCompleted, Refused, ValueRefused
from freehold.schema.failure import Failure, error_of, failure_of, read_failure
from freehold.schema.foreign import type_name
from freehold.schema.hashes import input_hash
from freehold.schema.ids import check_step_key
from freehold.schema.messages import BeginStep, EndStep, Message
from freehold.schema.secrets import SecretFilter
from freehold.schema.steps import INTENTS, POLICIES, PROBE, Again, Go, Recorded, position_of
from freehold.schema.values import canonical, decode, decode_as

T = TypeVar("T")
Unknown = Literal["repeat", "probe", "park"]
_STEP = "a step cannot wait: its function"


class Done(NamedTuple, Generic[T]):
    """What a probe returns that has found not only that a step was done, but also what it came to."""

    value: T


class Rule(NamedTuple):
    """What is to be done with an attempt of which nobody knows how it ended, and what finds it out."""

    unknown: Unknown | None = None
    probe: Callable[..., object] | None = None


class Ask(Protocol):
    """Asks the owner in the name of one claim."""

    def __call__(self, message: Message, size: int = 0, *, timeout: float | None = None) -> Any:
        """Return the answer, or raise it."""


def rule(unknown: object, probe: object) -> Rule:
    """Return a rule as it was asked for. Raises Refused (bad_option)."""
    if unknown is not None and unknown not in POLICIES:
        raise Refused(f"unknown is one of {', '.join(POLICIES)}; nothing was changed", code="bad_option")
    if (unknown == PROBE) is not callable(probe) or (probe is not None and not callable(probe)):
        raise Refused("unknown='probe' takes a function as its probe, and nothing else does; nothing was changed", code="bad_option")
    return Rule(unknown, probe)  # type: ignore[arg-type]


class Once(Generic[T]):
    """One call. The claim that its questions are asked with (`claim`) is its caller's to give back."""

    def __init__(
        self,
        key: str,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        secrets: SecretFilter,
        rule: Rule,
        timeout: float | None,
        durable: bool,
    ) -> None:
        """Check what can be checked before anything is asked. Raises Refused (bad_name, secret_refused, bad_option, awaitable_refused)."""
        key = check_step_key(key)
        secrets.check_text(key, "the key of a step")
        if not callable(fn):
            raise Refused("what a step does is a function; nothing was changed", code="bad_option")
        if iscoroutinefunction(fn):
            raise Refused(f"{_STEP} is one that has to be awaited; nothing was changed", code="awaitable_refused")
        self.claim = claim_inside()
        self._key = key
        self._fn = fn
        self._args = args
        self._kwargs = kwargs
        self._secrets = secrets
        self._rule = rule
        self._timeout = timeout
        self._durable = durable
        self._type = type_returned(fn)
        self._input = _fingerprint(args, kwargs, secrets)

    def run(self, ask: Ask) -> T:
        """Return what the step came to, running its function if it has to. Raises what `Run.once` raises."""
        self._ask = ask
        while True:
            answer = self._begin()
            if isinstance(answer, Recorded):
                return self._recorded(answer)
            if not answer.unsure:
                return self._attempt(answer)
            if (found := self._find_out(answer)) is not None:
                return self._keep(answer, found.value)

    def _begin(self) -> Recorded | Go:
        durable = self._durable or self._rule.unknown in INTENTS  # an intent is worth nothing before the disk has it
        message = BeginStep(position_of(self._key), self._key, self._input, self._rule.unknown, durable=durable)
        until = None if self._timeout is None else monotonic() + self._timeout
        while True:
            left = None if until is None else until - monotonic()
            if left is not None and left <= 0:
                raise exceeded("no")
            try:
                answer: Recorded | Go | Again = self._ask(message, timeout=left)
            except DeadlineExceeded:
                if self._rule.unknown in INTENTS:
                    raise  # the intent may stand in the journal by now
                raise exceeded("no") from None
            if not isinstance(answer, Again):
                return answer

    def _attempt(self, go: Go) -> T:
        try:
            with Inside(self._info(go), self.claim):
                value = self._fn(*self._args, **self._kwargs)
            refuse_awaitable(value, _STEP)
        except Exception as error:
            self._fail(go, error)
            raise
        return self._keep(go, value)

    def _find_out(self, go: Go) -> Done[Any] | None:
        """Return what the probe has found to be done; None when it was not, which is recorded then."""
        assert self._rule.probe is not None
        with Inside(self._info(go), self.claim):
            said = self._rule.probe(*self._args, **self._kwargs)
        refuse_awaitable(said, "a step cannot wait: its probe")
        if said is True:
            return Done(None)
        if isinstance(said, Done):
            return said
        if said is not False:
            raise Refused(
                f"a probe returns True, False or freehold.Done(value), not {type_name(said)}; nothing was changed", code="bad_option"
            )
        lost = Failure("freehold.NotDone", "this attempt began, nobody recorded its end, and its probe says that it was not done")
        self._end(go, failure=lost.text)
        return None

    def _keep(self, go: Go, value: Any) -> T:
        try:
            sealed = self._secrets.seal(value)
            data = sealed.data if self._type is None else self._made(sealed.record)
        except Exception as error:  # noqa: BLE001 - what is read of a value may be code of its own
            refused = self._unkept(error, value)
        else:
            self._end(go, result=sealed.record, final=True)
            return data  # type: ignore[no-any-return]
        self._end(go, failure=failure_of(refused, self._secrets).text, final=True)
        # Raised out here, so that it carries no context: that could hold the value.
        raise refused

    def _made(self, record: str) -> Any:
        # Null is what a probe knows that knows no more.
        return decode(record) if record == "null" or self._type is None else decode_as(record, self._type)

    def _unkept(self, error: Exception, value: object) -> Error:
        reason = f"$: {type_name(value)} raised {type_name(error)} when it was looked at"
        code, details, kind = "value_refused", {"path": "$", "type": type_name(value)}, ValueRefused
        if type(error) in (ValueRefused, Refused):
            known: Any = error
            reason, code, details, kind = str(known).removesuffix("; nothing was changed"), known.code, known.details, type(known)
        return kind(
            f"the step {self._key!r} was done, but what it returned cannot be kept: {reason}. It has failed, and is not done again",
            code=code,
            executed="yes",
            **details,
        )

    def _fail(self, go: Go, error: Exception) -> None:
        text = failure_of(error, self._secrets).text
        try:
            self._end(go, failure=text)
        except Error as ours:
            raise ours from error

    def _end(self, go: Go, *, result: str | None = None, failure: str | None = None, final: bool = False) -> None:
        message = EndStep(position_of(self._key), self._key, go.attempt, self._input, result, failure, final, self._durable)
        self._ask(message, len(result or failure or ""), timeout=self._timeout)

    def _recorded(self, recorded: Recorded) -> T:
        if recorded.result is not None:
            result: T = self._made(recorded.result)
            return result
        assert recorded.failure is not None
        failure = read_failure(recorded.failure)
        raise error_of(failure) or NotCompleted(f"the step {self._key!r} has failed ({failure.type})", executed="yes", key=self._key)

    def _info(self, go: Go) -> StepInfo:
        return StepInfo(self._key, go.attempt, go.idempotency_key)


def _fingerprint(args: tuple[Any, ...], kwargs: Mapping[str, Any], secrets: SecretFilter) -> str | None:
    """Return what stands for the arguments in the journal; None where they are no plain values, or hold a secret that it could betray."""
    try:
        return input_hash(canonical(secrets.seal([list(args), dict(kwargs)]).data)).hex()
    except Exception:  # noqa: BLE001 - what is read of an argument may be code of its own
        return None
