"""Clocks that are wrong: the chain's time counts, and certificates are known by what they are."""

import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.market.clocks import wrong_clock
from tests.market.yard import AUDITOR, TRAINER, Market, root_of
from trainyard.devnet.options import ETHER
from worker_agent.peers.identity import own_identity

_HOUR_S, _DAY_S = 3600, 86_400
_NOT_YET_VALID = 9
# What time it is, and what OpenSSL says of a certificate.
_TELL = """
import datetime, json, ssl, sys, time
def verified(path):
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(path)
    client.check_hostname = False
    client.load_verify_locations(path)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [server.wrap_bio(up, down, server_side=True), client.wrap_bio(down, up)]
    done = 0
    while done < 2:
        done = 0
        for end in reversed(ends):
            try:
                end.do_handshake()
                done += 1
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLCertVerificationError as error:
                return error.verify_code
    return 0
times = [time.time(), datetime.datetime.now().timestamp()]
print(json.dumps([times, [verified(path) for path in sys.argv[1:]]]))
"""


def _of_today(path: Path) -> None:
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "today's")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(secret + made.public_bytes(Encoding.PEM))


def test_certificates_of_workers_are_valid_by_any_clock(tmp_path: Path) -> None:
    """The clock is wrong for Python and for OpenSSL, which takes others for not valid yet."""
    environment = os.environ | wrong_clock(tmp_path / "clock", -30 * _DAY_S)
    _of_today(tmp_path / "today")
    ours = own_identity(tmp_path, "0x" + "11" * 20).path
    told = subprocess.run(
        [sys.executable, "-c", _TELL, str(tmp_path / "today"), str(ours)],
        env=environment,
        check=True,
        capture_output=True,
    )

    times, verified = json.loads(told.stdout)
    assert [round((time.time() - one) / _DAY_S, 1) for one in times] == [30.0, 30.0]
    assert verified == [_NOT_YET_VALID, 0]


@pytest.mark.long
def test_joint_run_of_workers_whose_clocks_are_ahead_and_behind_is_audited_and_paid(
    yard: Market, tmp_path: Path
) -> None:
    manifest = yard.manifest(mode="sync", workers=2, segments=4)
    ahead, behind, auditor = yard.name(), yard.name(), yard.name()
    clocks = {
        ahead: wrong_clock(tmp_path / "ahead", 5 * _HOUR_S),
        # Longer than any certificate that is made today reaches back, if it went by the clock.
        behind: wrong_clock(tmp_path / "behind", -30 * _DAY_S),
        auditor: wrong_clock(tmp_path / "auditor", -5 * _HOUR_S),
    }
    before = yard.wealth(*clocks, "requester")
    with (
        yard.agent(ahead, TRAINER, environment=clocks[ahead]) as one,
        yard.agent(behind, TRAINER, environment=clocks[behind]) as other,
        yard.agent(auditor, AUDITOR, environment=clocks[auditor]) as third,
    ):
        yard.wait_for_workers(one, other, third)
        task = yard.post(manifest, audits=1, min_audits=1)
        yard.settle(task, one, other, third)
        after = yard.wealth(*clocks, "requester")
        roots = {root_of(agent, task) for agent in (one, other)}

    assert len(roots) == 1
    assert {name: after[name] - before[name] for name in after} == {
        ahead: ETHER,
        behind: ETHER,
        auditor: ETHER // 100,
        "requester": -2 * ETHER - ETHER // 100,
    }
