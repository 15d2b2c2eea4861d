// The plugin's line to the gate: the process that fetches, verifies and caches for it.
#ifndef TRAINYARD_IPTF_GATE_H_
#define TRAINYARD_IPTF_GATE_H_

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "wire.h"

namespace iptf {

// A pool of connections; every thread that waits for an answer has one to itself.
class Gate {
 public:
  // One for the process. Never destroyed: TensorFlow's threads may outlive static destructors.
  static Gate& Get();

  // Sends `request` and waits for its answer. A gate that is gone gives UNAVAILABLE, after one try on
  // a fresh connection, so requests must be safe to send twice.
  Answer Call(Request request);

  // Sends `request`, which has no answer, if need be to a gate that was restarted. What cannot be
  // sent is lost.
  void Tell(Request request);

  // Changes in a child after fork(): what the parent opened is the parent's to close.
  uint64_t session() const { return session_.load(std::memory_order_relaxed); }

 private:
  Gate();
  Fd Connect(std::string* why);
  Fd Pooled();
  void Return(Fd connection);

  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();

  std::mutex mutex_;
  std::vector<Fd> idle_;
  std::atomic<uint64_t> session_;
};

// Copies the outcome of `answer` to `status`; true if it was OK and all its fields were there.
bool SetStatus(Answer& answer, TF_Status* status);

}  // namespace iptf

#endif  // TRAINYARD_IPTF_GATE_H_
