"""
What a client has installed for Session Manager: stand-ins for the command `aws` and for its plugin.

    python -m tests.clouds.aws.session_command aws ssm start-session --target ID ...
    python -m tests.clouds.aws.session_command session-manager-plugin SESSION REGION StartSession PROFILE ASKED URL

The first asks the API for a session, signed as any call, and becomes the second, which joins its input and output to
the data channel. Names, words and order of the arguments are those of the real ones; the session comes in a variable
that the first argument names, because its token is secret.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
import uuid
from typing import Any

from tests.clouds.aws.data_channel import COMPLETE, DATA, INPUT, MOST, PATIENCE, REQUEST, RESPONSE, End
from tests.clouds.aws.web_socket import TEXT, connected

VARIABLE = "AWS_SSM_START_SESSION_RESPONSE"


def aws(words: list[str]) -> None:
    """Ask for a session, and hand it to the plugin."""
    import boto3
    from botocore.exceptions import ClientError

    parser = argparse.ArgumentParser(prog="aws", allow_abbrev=False)
    parser.add_argument("service", choices=["ssm"])
    parser.add_argument("operation", choices=["start-session"])
    for name in ("--target", "--document-name", "--parameters"):
        parser.add_argument(name, required=True)
    parser.add_argument("--region")
    parser.add_argument("--profile")
    asked = parser.parse_args(words)
    client = boto3.Session(profile_name=asked.profile, region_name=asked.region).client("ssm")
    name, _, value = asked.parameters.partition("=")
    wanted: dict[str, Any] = {
        "Target": asked.target,
        "DocumentName": asked.document_name,
        "Parameters": {name: [value]},
    }
    try:
        answer = client.start_session(**wanted)
    except ClientError as error:
        print(f"\n{error}", file=sys.stderr)
        raise SystemExit(254) from None
    os.environ[VARIABLE] = json.dumps({name: answer[name] for name in ("SessionId", "TokenValue", "StreamUrl")})
    more = [VARIABLE, asked.region or "", "StartSession", asked.profile or "", json.dumps(wanted)]
    os.execvp("session-manager-plugin", ["session-manager-plugin", *more, client.meta.endpoint_url])


def plugin(words: list[str]) -> None:
    """Join input and output to a session."""
    session = json.loads(os.environ.pop(words[0]) if words[0].startswith(VARIABLE) else words[0])
    assert words[2] == "StartSession", words
    channel = connected(session["StreamUrl"])
    opening = {"MessageSchemaVersion": "1.0", "RequestId": str(uuid.uuid4()), "TokenValue": session["TokenValue"]}
    opening |= {"ClientId": str(uuid.uuid4()), "ClientVersion": "1.2.0.0"}
    channel.send(json.dumps(opening).encode(), TEXT)
    # The real one overlooks what is said before it is ready, which the agent has to say once more.
    end = End(channel, INPUT, lost=2)
    threading.Thread(target=_again, args=(end,), daemon=True).start()
    while (message := end.receive()) is not None:
        if message.payload_kind == REQUEST:
            wanted = json.loads(message.payload)["RequestedClientActions"]
            actions = [{"ActionType": each["ActionType"], "ActionStatus": 1, "ActionResult": None} for each in wanted]
            answer = {"ClientVersion": "1.2.0.0", "ProcessedClientActions": actions, "Errors": []}
            end.send(json.dumps(answer).encode(), RESPONSE)
        elif message.payload_kind == COMPLETE:
            threading.Thread(target=_inwards, args=(end,), daemon=True).start()
        elif message.payload_kind == DATA:
            rest = memoryview(message.payload)
            while rest:
                rest = rest[os.write(1, rest) :]
    channel.close()


def _again(end: End) -> None:
    with contextlib.suppress(OSError):
        while True:
            time.sleep(PATIENCE / 5)
            end.remind()


def _inwards(end: End) -> None:
    while data := os.read(0, MOST):
        end.send(data)
        # The real one does so too: a tunnel carries a megabyte a second at most.
        time.sleep(0.001)
    # What is at its end has nothing more to say, and the session is over.
    end.channel.close()
    os._exit(0)


if __name__ == "__main__":
    {"aws": aws, "session-manager-plugin": plugin}[sys.argv[1]](sys.argv[2:])
