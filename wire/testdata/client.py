import os, socket, struct, sys
import msgpack

folder = os.environ.get("SUBLET_RUNTIME_DIR") or (
    os.environ["XDG_RUNTIME_DIR"] + "/sublet" if os.environ.get("XDG_RUNTIME_DIR") else f"/tmp/sublet-{os.getuid()}")
sock = socket.socket(socket.AF_UNIX)
sock.connect(folder + "/daemon.sock")


def send(kind, **body):
    payload = msgpack.packb([kind, body])
    sock.sendall(struct.pack(">I", len(payload)) + payload)


def exactly(n):
    data = b""
    while len(data) < n:
        piece = sock.recv(n - len(data))
        if not piece:
            sys.exit("the daemon closed the connection")
        data += piece
    return data


def receive():
    (length,) = struct.unpack(">I", exactly(4))
    return msgpack.unpackb(exactly(length))


send("EnvSnapshot", protocol_min=1, protocol_max=1, client={"name": "client.py", "version": "1", "pid": os.getpid()},
     capabilities=[], env={"PATH": os.environ["PATH"]}, cwd=os.getcwd(), shell={"path": "", "version": ""},
     term={"cols": 80, "rows": 24, "pixel_width": 0, "pixel_height": 0, "term": ""}, credentials={}, session_id=None,
     after_seq=-1, leases=[], mcp_servers=None)
kind, ready = receive()
if kind == "Error":
    sys.exit(ready["message"] + "; " + ready["hint"])
send("AgentRequest", request_id="r1", session_id=None, agent="", prompt=" ".join(sys.argv[1:]), attachments=[],
     context={"cwd": os.getcwd(), "recent_commands": [], "recent_output": None, "open_files": []},
     options={"model": "", "max_tokens": None, "temperature": None, "thinking": "", "tools": None,
              "require_approval": None, "mode": "", "timeout_ms": 0})
while True:
    kind, body = receive()
    if kind == "AgentStreamChunk" and body["chunk"]["type"] == "text":
        print(body["chunk"]["text"], end="", flush=True)
    elif kind == "Heartbeat" and not body["reply"]:
        send("Heartbeat", nonce=body["nonce"], at_ms=body["at_ms"], reply=True)
    elif kind == "Error":
        print("error:", body["message"], file=sys.stderr)
        if not body["turn_id"]:
            sys.exit(1)
    elif kind == "AgentComplete":
        print()
        sys.exit(body["status"] != "success")
