// Files open for writing, below iptf://mfs.
#ifndef TRAINYARD_IPTF_WRITING_H_
#define TRAINYARD_IPTF_WRITING_H_

#include <memory>
#include <string>

#include "gate.h"

namespace iptf {

// Writes through a descriptor that the gate has opened: the bytes do not pass through it.
class WritableFile {
 public:
  // Null, with `status` set, if it cannot be opened.
  static std::unique_ptr<WritableFile> Open(const char* uri, bool append, TF_Status* status);
  ~WritableFile();

  void Append(const char* data, size_t n, TF_Status* status);
  int64_t Tell() const { return static_cast<int64_t>(position_); }
  bool Flush(TF_Status* status);
  void Sync(TF_Status* status);
  void Close(TF_Status* status);

 private:
  WritableFile(const char* uri, Fd fd, uint64_t position)
      : uri_(uri), fd_(std::move(fd)), position_(position) {}
  // 0, or the errno of what went wrong.
  int Write(const char* data, size_t n);

  const std::string uri_;
  Fd fd_;
  uint64_t position_;
  std::string buffer_;
};

}  // namespace iptf

#endif  // TRAINYARD_IPTF_WRITING_H_
