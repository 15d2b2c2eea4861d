// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @notice An account that acts through a contract and misbehaves when money arrives.
contract HostileReceiver {
    enum Mood {
        Accept,
        Refuse,
        /// Calls back what a test told it to.
        Reenter,
        /// Burns all gas that it is given.
        Burn
    }

    Mood public mood;
    address public target;
    bytes public call;
    /// @notice Whether the last call back went through.
    bool public reentered;

    receive() external payable {
        _misbehave();
    }

    function setMood(Mood mood_, address target_, bytes calldata call_) external {
        mood = mood_;
        target = target_;
        call = call_;
    }

    /// @notice Acts as this account.
    function act(address to, uint256 value, bytes calldata data) external payable returns (bytes memory answer) {
        bool done;
        (done, answer) = to.call{value: value}(data);
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
    }

    /// @notice A callback token calls this.
    function tokensMoved() external {
        _misbehave();
    }

    function _misbehave() private {
        if (mood == Mood.Refuse) revert("refused");
        if (mood == Mood.Reenter) (reentered,) = target.call(call);
        if (mood == Mood.Burn) {
            while (true) {}
        }
    }
}
