#include "gate.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <random>

namespace iptf {
namespace {

constexpr size_t kIdleConnections = 32;
constexpr long kAnswerSeconds = 600;

std::string Errno(const std::string& what) { return what + ": " + strerror(errno); }

uint64_t NewSession() {
  std::random_device random;
  return (static_cast<uint64_t>(random()) << 32) | random();
}

bool Send(int fd, const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    ssize_t some = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) return false;
    sent += static_cast<size_t>(some);
  }
  return true;
}

// Fills `data`; a descriptor that comes along goes to `passed`.
bool Receive(int fd, void* data, size_t size, Fd* passed) {
  size_t got = 0;
  while (got < size) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    iovec piece{static_cast<char*>(data) + got, size - got};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t some = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (some < 0 && errno == EINTR) continue;
    if (some == 0) errno = ECONNRESET;
    if (some <= 0) return false;
    // The kernel drops a descriptor for which this process has no place.
    if (message.msg_flags & MSG_CTRUNC) {
      errno = EMFILE;
      return false;
    }
    for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
         head = CMSG_NXTHDR(&message, head)) {
      if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
      int number;
      memcpy(&number, CMSG_DATA(head), sizeof number);
      passed->Reset(number);
    }
    got += static_cast<size_t>(some);
  }
  return true;
}

bool Exchange(int fd, const std::string& frame, Answer* answer) {
  uint32_t length = 0;
  if (!Send(fd, frame) || !Receive(fd, &length, sizeof length, &answer->fd)) return false;
  if (length == 0 || length > kLongestAnswer) {
    errno = EPROTO;
    return false;
  }
  answer->bytes.resize(length);
  if (!Receive(fd, &answer->bytes[0], length, &answer->fd)) return false;
  answer->code = static_cast<uint8_t>(answer->bytes[0]);
  answer->bytes.erase(0, 1);
  return true;
}

uint64_t Run() {
  const char* run = getenv("IPTF_RUN");
  return run == nullptr ? 0 : strtoull(run, nullptr, 10);
}

}  // namespace

Gate& Gate::Get() {
  static Gate* gate = new Gate;
  return *gate;
}

Gate::Gate() : session_(NewSession()) {
  pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
}

void Gate::BeforeFork() { Get().mutex_.lock(); }
void Gate::AfterForkInParent() { Get().mutex_.unlock(); }
void Gate::AfterForkInChild() {
  // Two processes on one connection would read each other's answers.
  Get().idle_.clear();
  Get().session_ = NewSession();
  Get().mutex_.unlock();
}

Fd Gate::Pooled() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.empty()) return Fd();
  Fd connection = std::move(idle_.back());
  idle_.pop_back();
  return connection;
}

void Gate::Return(Fd connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (idle_.size() < kIdleConnections) idle_.push_back(std::move(connection));
}

Fd Gate::Connect(std::string* why) {
  const char* path = getenv("IPTF_SOCKET");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || *path == '\0' || strlen(path) >= sizeof address.sun_path) {
    *why = "IPTF_SOCKET does not name the gate's socket: call trainyard.iptf.enable(), or run the "
           "program as `iptf python ...`";
    return Fd();
  }
  strcpy(address.sun_path, path);
  Fd connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  timeval limit{kAnswerSeconds, 0};
  setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(connection.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    *why = Errno(std::string("the iptf gate does not answer at ") + path);
    return Fd();
  }
  Request hello(Op::kHello);
  hello.U32(kProtocol).U64(session()).U32(static_cast<uint32_t>(getpid())).U64(Run());
  Answer answer;
  if (!Exchange(connection.get(), hello.Frame(), &answer)) {
    *why = Errno("the iptf gate hung up");
    return Fd();
  }
  if (!answer.ok()) {
    *why = answer.Text();
    return Fd();
  }
  return connection;
}

Answer Gate::Call(Request request) {
  const std::string& frame = request.Frame();
  Fd connection = Pooled();
  while (true) {
    const bool pooled = connection.ok();
    std::string why;
    if (!pooled) connection = Connect(&why);
    if (!connection.ok()) return Answer::Failure(TF_UNAVAILABLE, why);
    Answer answer;
    if (Exchange(connection.get(), frame, &answer)) {
      Return(std::move(connection));
      return answer;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return Answer::Failure(TF_DEADLINE_EXCEEDED, "the iptf gate gave no answer in time");
    }
    if (errno == EMFILE) {
      return Answer::Failure(TF_RESOURCE_EXHAUSTED, Errno("the file cannot be opened"));
    }
    if (!pooled) return Answer::Failure(TF_UNAVAILABLE, Errno("the iptf gate hung up"));
    // It was idle and may be of a gate that was restarted since; so may be all the others.
    connection.Reset();
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.clear();
  }
}

void Gate::Tell(Request request) {
  const std::string& frame = request.Frame();
  std::string why;
  Fd connection = Pooled();
  // An idle one may be of a gate that was restarted since.
  while (connection.ok() && !Send(connection.get(), frame)) connection = Pooled();
  const bool sent = connection.ok();
  if (!sent) connection = Connect(&why);
  if (sent || (connection.ok() && Send(connection.get(), frame))) Return(std::move(connection));
}

bool SetStatus(Answer& answer, TF_Status* status) {
  if (answer.ok() && answer.whole()) {
    TF_SetStatus(status, TF_OK, "");
    return true;
  }
  if (answer.ok()) {
    TF_SetStatus(status, TF_INTERNAL, "the iptf gate's answer is cut short");
  } else {
    const TF_Code code =
        answer.code > TF_UNAUTHENTICATED ? TF_INTERNAL : static_cast<TF_Code>(answer.code);
    TF_SetStatus(status, code, answer.Text().c_str());
  }
  return false;
}

}  // namespace iptf
