"""Bad requests over HTTP to a process that serves: what it answers, how soon, what it keeps."""

import http.client
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter, sleep
from typing import IO

import running
from door.case import JSON, Case, Sent
from door.checks import GOOD_REQUEST, ORIGIN, Answer, check
from service.idle import QUIET_SECONDS

MIB = 1 << 20
_PATIENCE = 60
_LARGEST = b'{"a": "' + b"x" * (16 * MIB - 9) + b'"}'


@dataclass(frozen=True, slots=True)
class Service:
    """A process that serves, asked over a connection for each request."""

    process: running.Service

    def resident(self) -> int:
        """Bytes of memory it holds, once it was quiet for a while."""
        sleep(2.5 * QUIET_SECONDS)
        return self.process.bytes_of("VmRSS")

    def peak(self) -> int:
        """The most bytes it held since `forget_peak`."""
        return self.process.bytes_of("VmHWM")

    def warm_up(self) -> bytes:
        """One largest body and one good request; the answer to that."""
        self.send("POST", "/v1/trace", JSON, _LARGEST)
        return self.good()

    def good(self) -> bytes:
        """Its answer to a good request."""
        answer = self.send("POST", "/v1/trace", JSON, GOOD_REQUEST)
        assert answer.status == 200
        return answer.content

    def ask(self, case: Case) -> Answer:
        """Its answer to a bad request; where the head alone is bad, no body is sent."""
        body = None if case.wire else case.body()
        return self.send(case.method, case.path, case.headers, body)

    def timed(self, case: Case) -> tuple[float, Answer]:
        """The seconds from the first byte of a request to the last of its answer, and that."""
        made = case.body()
        start = perf_counter()
        answer = self.ask(replace(case, body=lambda: made))
        return perf_counter() - start, answer

    def send(
        self, method: str, path: str, headers: Mapping[str, str], body: Sent | None = None
    ) -> Answer:
        """Its answer; without a body nothing is said of its length either."""
        chunked = body is not None and not isinstance(body, bytes)
        length = {"Content-Length": str(len(body))} if isinstance(body, bytes) else {}
        coding = {"Transfer-Encoding": "chunked"} if chunked else {}
        connection = http.client.HTTPConnection("127.0.0.1", self.process.port, timeout=_PATIENCE)
        with closing(connection):
            connection.putrequest(method, path, skip_accept_encoding=True)
            for name, value in {"Origin": ORIGIN, **headers, **length, **coding}.items():
                connection.putheader(name, value)
            connection.endheaders(body, encode_chunked=chunked)
            return _answer(connection)


@contextmanager
def service(log: IO[bytes]) -> Iterator[Service]:
    """A service that writes a line a request into a log."""
    with running.service(log, log_level="info", cors_origins=ORIGIN) as process:
        yield Service(process)


def _answer(connection: http.client.HTTPConnection) -> Answer:
    response = connection.getresponse()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, headers, response.read())


@dataclass(frozen=True, slots=True)
class Pass:
    """What cases came to: those not answered as expected and why, seconds, answers' lengths."""

    wrong: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)

    def note(self, service: Service, name: str, case: Case) -> None:
        """Ask once and check the answer; one that was slow has two more tries."""
        self.seconds[name], answer = service.timed(case)
        for _ in range(2 if self.seconds[name] > 1 else 0):
            self.seconds[name] = min(self.seconds[name], service.timed(case)[0])
        self.lengths[name] = len(answer.content)
        try:
            check(case, answer)
        except (AssertionError, KeyError) as error:
            self.wrong[name] = str(error) or "not as expected"


def passed(service: Service, cases: Iterable[tuple[str, Case]]) -> Pass:
    """What the cases come to, the health asked for after each tenth."""
    done = Pass()
    for count, (name, case) in enumerate(cases):
        done.note(service, name, case)
        if count % 10 == 9:
            assert service.send("GET", "/healthz", {}).status == 200
    return done


@dataclass(frozen=True, slots=True)
class Figures:
    """Two passes of the same cases: the memory held before, between and after them, and at most."""

    first: Pass
    second: Pass
    held: tuple[int, int, int]
    peak: int
    same: bool

    def __str__(self) -> str:
        slowest = max(self.first.seconds, key=lambda name: self.first.seconds[name])
        longest = max(self.first.lengths, key=lambda name: self.first.lengths[name])
        before, between, after = (size / MIB for size in self.held)
        return (
            f"{len(self.first.seconds)} bad requests, twice\n"
            f"slowest: {self.first.seconds[slowest]:.2f} s, {slowest}\n"
            f"longest answer: {self.first.lengths[longest]:,} bytes, {longest}\n"
            f"memory in MiB: {before:.0f} before, {between:.0f} after, {after:.0f} after twice, "
            f"{self.peak / MIB:.0f} at most"
        )


def twice(service: Service, cases: Iterable[tuple[str, Case]]) -> Figures:
    """Figures of cases: after a warm-up, two passes, and the good request again."""
    listed = list(cases)
    good = service.warm_up()
    before = service.resident()
    service.process.forget_peak()
    first = passed(service, listed)
    between = service.resident()
    second = passed(service, listed)
    held = (before, between, service.resident())
    return Figures(first, second, held, service.peak(), service.good() == good)
