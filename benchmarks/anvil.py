"""An anvil of our own: a free loopback port, fixed time, and an end with the block that uses it."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hexbytes import HexBytes
from requests import Session
from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, TxReceipt

ANVIL = Path(__file__).resolve().parents[1] / "node_modules" / ".bin" / "anvil"
# Fixed, and one second per block: what a run hashes does not depend on when it is run.
GENESIS_TIME = 1_900_000_000
_BLOCK_SECONDS = 1
_STOP_SECONDS = 5
# Anvil takes messages of two megabytes at most.
_MESSAGE_REQUESTS = 500
_OPTIONS = {
    "--host": "127.0.0.1",
    # Anvil picks a free one and says which.
    "--port": "0",
    "--balance": "1000000",
    "--timestamp": str(GENESIS_TIME),
    # What the contracts are compiled for; later forks charge the same for them.
    "--hardfork": "shanghai",
    # Transactions of one block run in the order in which they were sent.
    "--order": "fifo",
    "--gas-limit": str(2**40),
    # A draw looks back 256 blocks at most.
    "--prune-history": "300",
}


class AnvilError(RuntimeError):
    """Anvil did not start, or refused a request."""


class Anvil:
    """A running chain whose accounts are unlocked."""

    def __init__(self, url: str) -> None:
        self.url = url
        session = Session()
        # No proxy between us and our own port.
        session.trust_env = False
        self._provider = HTTPProvider(url, request_kwargs={"timeout": 60}, session=session)
        # Middleware asks the chain for fees and its id before every call; anvil fills them in.
        self.web3 = Web3(self._provider, middleware=[])

    def request(self, method: str, *params: Any) -> Any:
        return _result(self._provider.make_request(RPCEndpoint(method), list(params)))

    def batch(self, method: str, each: Sequence[Sequence[Any]]) -> list[Any]:
        """One request per entry of `each`, in one message."""
        answers = self._provider.make_batch_request(
            [(RPCEndpoint(method), list(params)) for params in each]
        )
        if isinstance(answers, dict):
            raise AnvilError(f"{method}: {answers['error']}")
        return [_result(answer) for answer in answers]

    def nonce(self, account: str) -> int:
        return int(self.request("eth_getTransactionCount", account, "latest"), 16)

    def receipt(self, transaction: HexBytes) -> TxReceipt:
        # It is mined at once, but not always before anvil has answered.
        return self.web3.eth.wait_for_transaction_receipt(transaction, poll_latency=0.002)

    def next_block_at(self, timestamp: int) -> None:
        self.request("evm_setNextBlockTimestamp", timestamp)

    def mine(self, blocks: int = 1) -> None:
        self.request("anvil_mine", hex(blocks), hex(_BLOCK_SECONDS))

    def send_in_one_block(self, transactions: Sequence[dict[str, str]]) -> None:
        """Their order is not kept, except between those of one sender, whose nonces they name."""
        # Without automatic mining they wait for each other; impersonation spares the signatures.
        self.request("evm_setAutomine", False)
        self.request("anvil_autoImpersonateAccount", True)
        for start in range(0, len(transactions), _MESSAGE_REQUESTS):
            message = transactions[start : start + _MESSAGE_REQUESTS]
            self.batch("eth_sendTransaction", [[transaction] for transaction in message])
        self.mine()
        self.request("anvil_autoImpersonateAccount", False)
        self.request("evm_setAutomine", True)


@contextmanager
def running_anvil(*, accounts: int) -> Iterator[Anvil]:
    """Start anvil, and end it with the block: by its end, an error, Ctrl-C or a request to stop."""
    if not ANVIL.exists():
        raise AnvilError(f"{ANVIL.name} is not installed: run 'make setup'")
    options = [part for option in _OPTIONS.items() for part in option]
    before = signal.signal(signal.SIGTERM, _exit_on_signal)
    process = subprocess.Popen(
        [str(ANVIL), *options, "--accounts", str(accounts)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        anvil = Anvil(_address(process))
        # From here on it logs every request, which nobody reads.
        anvil.request("anvil_setLoggingEnabled", False)
        anvil.request("anvil_setBlockTimestampInterval", _BLOCK_SECONDS)
        yield anvil
    finally:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()
        signal.signal(signal.SIGTERM, before)


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.match(r"Listening on (\S+)", line):
            return f"http://{found[1]}"
        said.append(line)
    raise AnvilError(f"anvil ended with {process.wait()}: {''.join(said[-5:])}")


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _result(answer: Any) -> Any:
    if "error" in answer:
        raise AnvilError(str(answer["error"]))
    return answer["result"]
