"""What a transaction offers for its place in a block (EIP-1559)."""

from dataclasses import dataclass

from trainyard.chain.blocks import Header

GWEI = 10**9


@dataclass(frozen=True, slots=True)
class Fees:
    """In wei per unit of gas."""

    max_fee: int
    tip: int


@dataclass(frozen=True, slots=True)
class FeePolicy:
    """How much to offer, and when to offer more."""

    # Never more than this per unit of gas, however busy the chain is.
    most_wei: int = 500 * GWEI
    least_tip_wei: int = GWEI
    # As far as an endpoint's word on tips is followed: it may be wrong, or be paid for it. What
    # waits too long is raised beyond that, step by step.
    most_tip_wei: int = 50 * GWEI
    # So many blocks without being mined, and a transaction is replaced.
    patience_blocks: int = 3
    # So near its deadline it is replaced at every block.
    hurry_s: int = 60
    # What the operator calls the limit.
    limit_name: str = "the limit"
    # Of what was estimated, since the state may change until it is mined.
    gas_percent: int = 125
    # And so much more: of several that answer in one block the last one ends the stage, which none
    # of them has seen when it tried. What is not used is not paid for.
    gas_extra: int = 100_000

    def gas(self, estimate: int) -> int:
        """How much to allow for."""
        return estimate * self.gas_percent // 100 + self.gas_extra

    def first(self, base_fee: int, tip: int) -> Fees:
        """Enough for six full blocks in a row, each of which raises the base fee by an eighth."""
        tip = min(max(min(tip, self.most_tip_wei), self.least_tip_wei), self.most_wei)
        return Fees(min(2 * base_fee + tip, self.most_wei), tip)

    def price(self, head: Header, tip: int) -> int:
        """About what a unit of gas costs in the block after `head`, at a node that asks for `tip`.

        With all of the tip that is offered: where tips are dear, that is most of it.
        """
        return head.base_fee + self.first(head.base_fee, tip).tip

    def patience(self, by: int | None, now: int) -> int:
        """How many blocks are waited for what is in vain from `by` on, in the chain's seconds."""
        is_near = by is not None and now < by <= now + self.hurry_s
        return 1 if is_near else self.patience_blocks

    def raised(self, old: Fees, base_fee: int, tip: int) -> Fees | None:
        """What replaces `old`: both parts an eighth higher at least; None beyond the limit."""
        fresh = self.first(base_fee, tip)
        raised = Fees(max(_eighth_more(old.max_fee), fresh.max_fee), _eighth_more(old.tip))
        tip = max(raised.tip, fresh.tip)
        return None if max(raised.max_fee, tip) > self.most_wei else Fees(raised.max_fee, tip)


def _eighth_more(wei: int) -> int:
    # Rounded up: nodes refuse a replacement that is a wei short.
    return wei + -(-wei // 8)
