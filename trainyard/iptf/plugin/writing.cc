#include "writing.h"

#include <errno.h>

namespace iptf {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

void SetErrno(TF_Status* status, const std::string& uri, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  const std::string why = "writing " + uri + ": " + strerror(error);
  TF_SetStatus(status, full ? TF_RESOURCE_EXHAUSTED : TF_INTERNAL, why.c_str());
}

}  // namespace

std::unique_ptr<WritableFile> WritableFile::Open(const char* uri, bool append, TF_Status* status) {
  Answer answer = Gate::Get().Call(std::move(Request(Op::kCreate).Text(uri).U8(append)));
  const uint64_t position = answer.ok() ? answer.U64() : 0;
  if (!SetStatus(answer, status)) return nullptr;
  return std::unique_ptr<WritableFile>(new WritableFile(uri, std::move(answer.fd), position));
}

WritableFile::~WritableFile() {
  if (fd_.ok()) Write(buffer_.data(), buffer_.size());
}

int WritableFile::Write(const char* data, size_t n) {
  while (n > 0) {
    ssize_t some = write(fd_.get(), data, n);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) return errno;
    data += some;
    n -= static_cast<size_t>(some);
  }
  return 0;
}

void WritableFile::Append(const char* data, size_t n, TF_Status* status) {
  if (!fd_.ok()) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, (uri_ + " is closed").c_str());
    return;
  }
  if (buffer_.size() + n > kBufferBytes && !Flush(status)) return;
  if (n < kBufferBytes) {
    buffer_.append(data, n);
  } else if (int error = Write(data, n)) {
    SetErrno(status, uri_, error);
    return;
  }
  position_ += n;
  TF_SetStatus(status, TF_OK, "");
}

bool WritableFile::Flush(TF_Status* status) {
  const int error = fd_.ok() ? Write(buffer_.data(), buffer_.size()) : 0;
  // Bytes that could not be written are not tried again: part of them may be in the file.
  buffer_.clear();
  if (error != 0) {
    SetErrno(status, uri_, error);
    return false;
  }
  TF_SetStatus(status, TF_OK, "");
  return true;
}

void WritableFile::Sync(TF_Status* status) {
  if (!Flush(status)) return;
  if (fd_.ok() && fdatasync(fd_.get()) != 0) SetErrno(status, uri_, errno);
}

void WritableFile::Close(TF_Status* status) {
  const bool flushed = Flush(status);
  fd_.Reset();
  if (flushed) TF_SetStatus(status, TF_OK, "");
}

}  // namespace iptf
