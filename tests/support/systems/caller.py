"""The command ``evenkeel`` for a stand-in: ``caller.py SOCKET ARGUMENT...`` has `server` run it."""

# ruff: noqa: PTH109 (it starts without the site, and in a hurry)

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    asked = json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [asked], [0, 1, 2])
    line.shutdown(socket.SHUT_WR)
    sys.exit(int(line.recv(16)))
