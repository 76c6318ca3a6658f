"""What is no HTTP never reaches the application: the server answers it, in the form that the API's answers have."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from thalweg.kernel.problems import MEDIA_TYPE, Problem

_PROBLEM = Problem(
    "malformed_request", "The request is no HTTP/1.1.",
    "Send it through an HTTP client: a header's value holds no control characters.",
)  # fmt: skip
_CONTENT = _PROBLEM.details("").model_dump_json().encode()
ANSWER = b"\r\n".join(
    [
        b"HTTP/1.1 400 Bad Request",
        b"Content-Type: " + MEDIA_TYPE.encode(),
        b"Content-Length: %d" % len(_CONTENT),
        b"X-Content-Type-Options: nosniff",
        b"Cache-Control: no-store",
        b"Connection: close",
        b"",
        _CONTENT,
    ]
)


class ProblemProtocol(HttpToolsProtocol):
    """uvicorn's protocol; a request that its parser refuses is answered with problem details."""

    def send_400_response(self, msg: str) -> None:
        self.transport.write(ANSWER)
        self.transport.close()
