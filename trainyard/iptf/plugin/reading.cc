#include "reading.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <set>

namespace iptf {
namespace {

// An empty file has nothing to map, and yet is a region with an address.
const char kNothing[1] = {0};

// The files that are open, so that a process that ends without closing them leaves a full log.
struct Registry {
  std::mutex mutex;
  std::set<ReadableFile*> files;

  static Registry& Get() {
    static Registry* registry = new Registry;
    return *registry;
  }

 private:
  // A child whose parent was just opening a file could else never open one. Made after the gate,
  // so a fork takes this lock before the gate's, as ReportAll does.
  Registry() {
    pthread_atfork([] { Get().mutex.lock(); }, [] { Get().mutex.unlock(); },
                   [] { Get().mutex.unlock(); });
  }
};

}  // namespace

std::unique_ptr<Mapping> Mapping::Of(const Fd& fd, uint64_t size) {
  if (size == 0) return std::unique_ptr<Mapping>(new Mapping(const_cast<char*>(kNothing), 0));
  void* data = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return nullptr;
  return std::unique_ptr<Mapping>(new Mapping(static_cast<char*>(data), size));
}

Mapping::~Mapping() {
  if (size_ > 0) munmap(data_, size_);
}

std::unique_ptr<ReadableFile> ReadableFile::Open(const char* uri, TF_Status* status) {
  std::unique_ptr<ReadableFile> file(new ReadableFile(uri));
  if (!file->Acquire(status)) return nullptr;
  Registry& registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  registry.files.insert(file.get());
  return file;
}

ReadableFile::~ReadableFile() {
  Registry& registry = Registry::Get();
  {
    std::lock_guard<std::mutex> lock(registry.mutex);
    registry.files.erase(this);
  }
  if (handle_ != 0) Report(/*release=*/true);
}

// Opens the file at the gate: the first time, or again after the gate was restarted.
bool ReadableFile::Acquire(TF_Status* status) {
  Answer answer = Gate::Get().Call(std::move(Request(Op::kOpen).Text(uri_)));
  const uint64_t handle = answer.ok() ? answer.U64() : 0;
  const uint64_t size = answer.ok() ? answer.U64() : 0;
  const bool complete = answer.ok() && answer.U8() != 0;
  const bool live = answer.ok() && answer.U8() != 0;
  const std::string cid = answer.ok() ? answer.Text() : "";
  if (!SetStatus(answer, status)) return false;
  std::unique_ptr<Mapping> mapping;
  if (!live) {
    mapping = Mapping::Of(answer.fd, size);
    if (mapping == nullptr) {
      const std::string why = uri_ + " cannot be mapped: " + strerror(errno);
      TF_SetStatus(status, TF_INTERNAL, why.c_str());
      Request close(Op::kClose);
      Gate::Get().Tell(std::move(close.U64(handle).U8(1).Text(uri_).Text(cid).U64(0).U32(0)));
      return false;
    }
  }
  // Other threads read these without a lock. A CID's bytes are the same at every gate.
  if (handle_ == 0) {
    size_ = size;
    live_ = live;
    cid_ = cid;
  }
  // INVARIANT: the handle is that of the last mapping, or its answers would vouch for another's bytes.
  handle_ = handle;
  session_ = Gate::Get().session();
  if (live_) {
    live_fd_ = std::move(answer.fd);
    return true;
  }
  if (complete) whole_.store(mapping->data(), std::memory_order_release);
  verified_.Clear();
  mappings_.push_back(std::move(mapping));
  return true;
}

// The mapping, if the range is known to be verified.
const char* ReadableFile::Seen(uint64_t begin, uint64_t end) {
  const char* whole = whole_.load(std::memory_order_acquire);
  if (whole != nullptr) return whole;
  std::lock_guard<std::mutex> lock(mutex_);
  return verified_.Covers(begin, end) ? mappings_.back()->data() : nullptr;
}

// The mapping, once the gate has verified the range in it.
const char* ReadableFile::Verified(uint64_t begin, uint64_t end, TF_Status* status) {
  for (bool again = false;; again = true) {
    if (const char* data = Seen(begin, end)) return data;
    uint64_t handle;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      handle = handle_;
    }
    Answer answer =
        Gate::Get().Call(std::move(Request(Op::kEnsure).U64(handle).U64(begin).U64(end - begin)));
    if (answer.code == kUnknownHandle && !again) {
      std::lock_guard<std::mutex> lock(mutex_);
      // Another thread may have been faster.
      if (handle == handle_ && !Acquire(status)) return nullptr;
      continue;
    }
    const uint64_t until = answer.ok() ? answer.U64() : 0;
    const bool complete = answer.ok() && answer.U8() != 0;
    if (!SetStatus(answer, status)) return nullptr;
    std::lock_guard<std::mutex> lock(mutex_);
    // The answer is about the mapping that it was asked for.
    if (handle != handle_) continue;
    verified_.Add(begin, std::max(until, end));
    const char* data = mappings_.back()->data();
    if (complete) whole_.store(data, std::memory_order_release);
    return data;
  }
}

int64_t ReadableFile::Read(uint64_t offset, size_t n, char* buffer, TF_Status* status) {
  if (live_) return ReadLive(offset, n, buffer, status);
  const size_t wanted = offset < size_ ? std::min<uint64_t>(n, size_ - offset) : 0;
  if (wanted > 0) {
    const char* data = Seen(offset, offset + wanted);
    if (data == nullptr) data = Verified(offset, offset + wanted, status);
    if (data == nullptr) return -1;
    memcpy(buffer, data + offset, wanted);
    log_.Note(offset, offset + wanted);
  }
  if (wanted == n) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "the file ends here");
  }
  return static_cast<int64_t>(wanted);
}

int64_t ReadableFile::ReadLive(uint64_t offset, size_t n, char* buffer, TF_Status* status) {
  size_t got = 0;
  while (got < n) {
    ssize_t some = pread(live_fd_.get(), buffer + got, n - got, static_cast<off_t>(offset + got));
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) {
      TF_SetStatus(status, TF_INTERNAL, (uri_ + ": " + strerror(errno)).c_str());
      return -1;
    }
    if (some == 0) break;
    got += static_cast<size_t>(some);
  }
  if (got > 0) log_.Note(offset, offset + got);
  if (got == n) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "the file ends here");
  }
  return static_cast<int64_t>(got);
}

const char* ReadableFile::Whole(TF_Status* status) {
  if (!live_) {
    const char* data = Verified(0, size_, status);
    if (data != nullptr) log_.Note(0, size_);
    return data;
  }
  // Another process may cut a file of ours short, and a mapping of it would then end this process.
  copy_.resize(size_);
  int64_t got = ReadLive(0, size_, &copy_[0], status);
  if (got < 0) return nullptr;
  size_ = static_cast<uint64_t>(got);
  return copy_.data();
}

void ReadableFile::Report(bool release) {
  uint64_t bytes = 0;
  Ranges ranges = log_.Take(&bytes);
  Request request(Op::kClose);
  // A child after fork() has read, but the handle is its parent's.
  request.U64(handle_).U8(release && session_ == Gate::Get().session());
  // A gate that was restarted does not know the handle, yet has to log what was read.
  request.Text(uri_).Text(cid_).U64(bytes);
  request.U32(static_cast<uint32_t>(ranges.ends().size()));
  for (const auto& [begin, end] : ranges.ends()) request.U64(begin).U64(end);
  Gate::Get().Tell(std::move(request));
}

void ReadableFile::ReportAll() {
  Registry& registry = Registry::Get();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (ReadableFile* file : registry.files) file->Report(/*release=*/false);
}

}  // namespace iptf
