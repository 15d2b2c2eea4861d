// The messages between the plugin and its gate.
//
// A request is `u32 length, u8 operation, fields`; an answer is `u32 length, u8 code, fields`, where
// the code is TensorFlow's and, unless it is OK, the only field is a text that says why. Integers are
// little-endian and a text is `u32 length, bytes`. An answer may carry one file descriptor.
// trainyard/iptf/wire.py is the other end: the two change together, and kProtocol with them.
#ifndef TRAINYARD_IPTF_WIRE_H_
#define TRAINYARD_IPTF_WIRE_H_

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "tensorflow/c/tf_status.h"

namespace iptf {

constexpr uint32_t kProtocol = 2;
// Larger than the listing of the largest directory that the gate accepts.
constexpr uint32_t kLongestAnswer = 512u << 20;
// Not one of TensorFlow's codes: the gate was restarted and has forgotten the handle.
constexpr uint8_t kUnknownHandle = 255;

enum class Op : uint8_t {
  kHello = 1,
  kOpen = 2,
  kEnsure = 3,
  kClose = 4,  // has no answer
  kStat = 5,
  kList = 6,
  kMatch = 7,
  kCreate = 8,
  kMakeDir = 9,
  kRemoveFile = 10,
  kRemoveDir = 11,
  kRemoveTree = 12,
  kRename = 13,
};

// A file descriptor that is closed with its owner.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

class Request {
 public:
  explicit Request(Op op) : bytes_(sizeof(uint32_t), '\0') { U8(static_cast<uint8_t>(op)); }

  Request& U8(uint8_t value) { return Raw(&value, sizeof value); }
  Request& U32(uint32_t value) { return Raw(&value, sizeof value); }
  Request& U64(uint64_t value) { return Raw(&value, sizeof value); }
  Request& Text(const std::string& value) {
    U32(static_cast<uint32_t>(value.size()));
    return Raw(value.data(), value.size());
  }

  // The whole frame, its length filled in.
  const std::string& Frame() {
    uint32_t length = static_cast<uint32_t>(bytes_.size() - sizeof(uint32_t));
    memcpy(&bytes_[0], &length, sizeof length);
    return bytes_;
  }

 private:
  Request& Raw(const void* data, size_t size) {
    bytes_.append(static_cast<const char*>(data), size);
    return *this;
  }

  std::string bytes_;
};

// An answer, read field by field. A field that is not there reads as zero and makes `whole` false.
class Answer {
 public:
  uint8_t code = TF_UNAVAILABLE;
  std::string bytes;
  Fd fd;

  bool ok() const { return code == TF_OK; }
  bool whole() const { return whole_; }
  uint8_t U8() { return Number<uint8_t>(); }
  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  std::string Text() {
    uint32_t size = U32();
    if (!Has(size)) return "";
    at_ += size;
    return bytes.substr(at_ - size, size);
  }

  static Answer Failure(TF_Code code, const std::string& why) {
    Answer answer;
    answer.code = static_cast<uint8_t>(code);
    uint32_t size = static_cast<uint32_t>(why.size());
    answer.bytes.assign(reinterpret_cast<const char*>(&size), sizeof size);
    answer.bytes += why;
    return answer;
  }

 private:
  bool Has(size_t size) {
    if (bytes.size() - at_ < size) whole_ = false;
    return whole_;
  }
  template <typename T>
  T Number() {
    T value = 0;
    if (!Has(sizeof value)) return 0;
    memcpy(&value, bytes.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  size_t at_ = 0;
  bool whole_ = true;
};

}  // namespace iptf

#endif  // TRAINYARD_IPTF_WIRE_H_
