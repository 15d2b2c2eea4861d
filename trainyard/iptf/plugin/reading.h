// Files open for reading.
#ifndef TRAINYARD_IPTF_READING_H_
#define TRAINYARD_IPTF_READING_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gate.h"
#include "ranges.h"

namespace iptf {

// A file of the cache, mapped. The gate fills it; what it has not yet verified is never looked at.
class Mapping {
 public:
  // Null, with errno set, if it cannot be mapped.
  static std::unique_ptr<Mapping> Of(const Fd& fd, uint64_t size);
  ~Mapping();
  const char* data() const { return data_; }

 private:
  Mapping(char* data, uint64_t size) : data_(data), size_(size) {}
  char* data_;
  uint64_t size_;
};

class ReadableFile {
 public:
  // Null, with `status` set, if it cannot be opened.
  static std::unique_ptr<ReadableFile> Open(const char* uri, TF_Status* status);
  ~ReadableFile();

  // As TF_RandomAccessFileOps::read.
  int64_t Read(uint64_t offset, size_t n, char* buffer, TF_Status* status);

  // All of the file, verified, or null with `status` set. Valid as long as the file is.
  const char* Whole(TF_Status* status);
  uint64_t size() const { return size_; }

  // Tells the gate what was read of each file that is still open.
  static void ReportAll();

 private:
  explicit ReadableFile(const char* uri) : uri_(uri) {}
  bool Acquire(TF_Status* status);
  const char* Verified(uint64_t begin, uint64_t end, TF_Status* status);
  const char* Seen(uint64_t begin, uint64_t end);
  int64_t ReadLive(uint64_t offset, size_t n, char* buffer, TF_Status* status);
  void Report(bool release);

  const std::string uri_;
  // A file that others may still change: read by the descriptor, whatever its size is by then.
  bool live_ = false;
  Fd live_fd_;
  uint64_t size_ = 0;
  // What the gate logs the reads under: of a live file what it held when it was opened.
  std::string cid_;
  ReadLog log_;

  // The mapping once all of it is verified; readers then need no lock.
  std::atomic<const char*> whole_{nullptr};

  std::mutex mutex_;
  uint64_t handle_ = 0;
  uint64_t session_ = 0;
  Ranges verified_;
  // The last one is current. After a restart of the gate others may still be read from.
  std::vector<std::unique_ptr<Mapping>> mappings_;
  // Only of a live file whose bytes were asked for at once.
  std::string copy_;
};

}  // namespace iptf

#endif  // TRAINYARD_IPTF_READING_H_
