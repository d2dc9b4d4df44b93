"""A port for a server that a test starts."""

import random
import socket

HOST = "127.0.0.1"


def free_port() -> int:
    """A port that nothing listens at.

    It is below those that the kernel gives to outgoing connections, so that none of another test
    takes it before the server does.
    """
    chosen = random.SystemRandom()
    while True:
        port = chosen.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) != 0:
                return port
