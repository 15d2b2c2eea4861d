// Sets of byte ranges: what is verified, and what was read.
#ifndef TRAINYARD_IPTF_RANGES_H_
#define TRAINYARD_IPTF_RANGES_H_

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

namespace iptf {

// Disjoint ranges [begin, end), merged where they touch.
class Ranges {
 public:
  void Add(uint64_t begin, uint64_t end) {
    if (begin >= end) return;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) {
      --next;
      begin = next->first;
    }
    while (next != ends_.end() && next->first <= end) {
      if (next->second > end) end = next->second;
      next = ends_.erase(next);
    }
    ends_.emplace_hint(next, begin, end);
  }

  bool Covers(uint64_t begin, uint64_t end) const {
    auto next = ends_.upper_bound(begin);
    return begin >= end || (next != ends_.begin() && std::prev(next)->second >= end);
  }

  // Halves the number of ranges by closing every other gap.
  void Coarsen() {
    for (auto range = ends_.begin(); range != ends_.end(); ++range) {
      auto next = std::next(range);
      if (next == ends_.end()) return;
      range->second = next->second;
      ends_.erase(next);
    }
  }

  void Clear() { ends_.clear(); }
  const std::map<uint64_t, uint64_t>& ends() const { return ends_; }

 private:
  std::map<uint64_t, uint64_t> ends_;
};

// What one file's readers have read. Reading on from where the last read ended costs no look-up.
class ReadLog {
 public:
  void Note(uint64_t begin, uint64_t end) {
    std::lock_guard<std::mutex> lock(mutex_);
    bytes_ += end - begin;
    if (begin >= begin_ && begin <= end_) {
      if (end > end_) end_ = end;
      return;
    }
    Settle();
    begin_ = begin;
    end_ = end;
  }

  // Hands over everything noted so far, once.
  Ranges Take(uint64_t* bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    Settle();
    begin_ = end_ = 0;
    *bytes = bytes_;
    bytes_ = 0;
    Ranges taken = std::move(ranges_);
    ranges_.Clear();
    return taken;
  }

 private:
  // A random reader would else make the log as large as the file.
  static constexpr size_t kMostRanges = 4096;

  void Settle() {
    ranges_.Add(begin_, end_);
    if (ranges_.ends().size() > kMostRanges) ranges_.Coarsen();
  }

  std::mutex mutex_;
  Ranges ranges_;
  uint64_t begin_ = 0, end_ = 0, bytes_ = 0;
};

}  // namespace iptf

#endif  // TRAINYARD_IPTF_RANGES_H_
