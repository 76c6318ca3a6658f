"""A TCP relay on loopback whose connections a test can cut."""

import contextlib
import socket
import threading

CHUNK = 64 * 1024


class Relay:
    """Listens on `port` and passes everything to `target` of 127.0.0.1. Threads of its own until close()."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.lock = threading.Lock()
        self.sockets: set[socket.socket] = set()
        self.passing = True
        self.flowing = threading.Event()
        self.flowing.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection; new ones are taken at once."""
        with self.lock:
            for sock in self.sockets:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def sever(self) -> None:
        """Like cut(), and new connections break, too, until mend()."""
        self.passing = False
        self.cut()

    def silence(self) -> None:
        """Takes connections and what they bring, and passes nothing on, until mend()."""
        self.flowing.clear()

    def mend(self) -> None:
        self.passing = True
        self.flowing.set()

    def close(self) -> None:
        self.sever()
        self.flowing.set()
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return  # closed
            if not self.passing:
                near.close()
                continue
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            with self.lock:
                self.sockets |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self.flowing.wait()
                sink.sendall(data)
        with self.lock:
            for sock in (source, sink):
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()
                self.sockets.discard(sock)
