// Drives the plugin as TensorFlow does, without TensorFlow, so that a sanitizer or valgrind sees
// every allocation and thread of it. Usage: driver <directory by CID> <directory below mfs> <turns>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

// TensorFlow's own part of the interface, as little as the plugin needs of it.
struct TSL_Status {
  TF_Code code = TF_OK;
  std::string message;
};

extern "C" {
void TF_SetStatus(TF_Status* status, TF_Code code, const char* message) {
  status->code = code;
  status->message = message;
}
TF_Code TF_GetCode(const TF_Status* status) { return status->code; }
}

namespace {

constexpr int kThreads = 16;

#define CHECK(condition, status)                                                      \
  if (!(condition)) {                                                                 \
    fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, (status).message.c_str()); \
    exit(1);                                                                          \
  }

struct Plugin {
  TF_FilesystemPluginInfo info{};
  const TF_FilesystemOps* fs;
  const TF_RandomAccessFileOps* readable;
  const TF_WritableFileOps* writable;
  const TF_ReadOnlyMemoryRegionOps* region;
  TF_Filesystem self{};

  Plugin() {
    TF_InitPlugin(&info);
    const TF_FilesystemPluginOps& ops = info.ops[1];
    fs = ops.filesystem_ops;
    readable = ops.random_access_file_ops;
    writable = ops.writable_file_ops;
    region = ops.read_only_memory_region_ops;
    TF_Status status;
    fs->init(&self, &status);
  }

  // TensorFlow keeps the tables for ever; here they are given back, as a leak would hide among them.
  ~Plugin() {
    fs->cleanup(&self);
    for (size_t i = 0; i < info.num_schemes; ++i) {
      info.plugin_memory_free(info.ops[i].scheme);
      info.plugin_memory_free(info.ops[i].filesystem_ops);
      info.plugin_memory_free(info.ops[i].random_access_file_ops);
      info.plugin_memory_free(info.ops[i].writable_file_ops);
      info.plugin_memory_free(info.ops[i].read_only_memory_region_ops);
    }
    info.plugin_memory_free(info.ops);
  }

  void FreeNames(char** names, int count) const {
    for (int i = 0; i < count; ++i) info.plugin_memory_free(names[i]);
    if (count >= 0) info.plugin_memory_free(names);
  }
};

// Many threads read one open file, each from another place on; all add up to the whole of it.
void ReadTogether(const Plugin& plugin, const std::string& path) {
  TF_Status status;
  const int64_t size = plugin.fs->get_file_size(&plugin.self, path.c_str(), &status);
  CHECK(size > 0, status);
  TF_RandomAccessFile file{};
  plugin.fs->new_random_access_file(&plugin.self, path.c_str(), &file, &status);
  CHECK(status.code == TF_OK, status);
  std::vector<char> whole(size);
  std::vector<std::thread> threads;
  const int64_t part = size / kThreads + 1;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      TF_Status mine;
      for (int64_t at = i * part; at < (i + 1) * part && at < size; at += 10'000) {
        const size_t n = std::min<int64_t>({10'000, (i + 1) * part - at, size - at});
        int64_t got = plugin.readable->read(&file, at, n, whole.data() + at, &mine);
        CHECK(got == static_cast<int64_t>(n) && mine.code == TF_OK, mine);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  char beyond[10];
  CHECK(plugin.readable->read(&file, size - 3, 10, beyond, &status) == 3, status);
  CHECK(status.code == TF_OUT_OF_RANGE, status);
  TF_ReadOnlyMemoryRegion region{};
  plugin.fs->new_read_only_memory_region_from_file(&plugin.self, path.c_str(), &region, &status);
  CHECK(status.code == TF_OK, status);
  CHECK(plugin.region->length(&region) == static_cast<uint64_t>(size), status);
  CHECK(memcmp(plugin.region->data(&region), whole.data(), size) == 0, status);
  plugin.region->cleanup(&region);
  plugin.readable->cleanup(&file);
}

void Look(const Plugin& plugin, const std::string& base) {
  TF_Status status;
  char** names = nullptr;
  int count = plugin.fs->get_children(&plugin.self, base.c_str(), &names, &status);
  CHECK(count > 0, status);
  for (int i = 0; i < count; ++i) {
    const std::string path = base + "/" + names[i];
    TF_FileStatistics stats;
    plugin.fs->stat(&plugin.self, path.c_str(), &stats, &status);
    CHECK(status.code == TF_OK, status);
    char* same = plugin.fs->translate_name(&plugin.self, path.c_str());
    CHECK(path == same, status);
    plugin.info.plugin_memory_free(same);
    ReadTogether(plugin, path);
  }
  plugin.FreeNames(names, count);
  count = plugin.fs->get_matching_paths(&plugin.self, (base + "/*").c_str(), &names, &status);
  CHECK(count > 0, status);
  plugin.FreeNames(names, count);
}

void Fail(const Plugin& plugin, const std::string& base) {
  TF_Status status;
  TF_RandomAccessFile file{};
  for (const std::string& path : {base, base + "/nothing", std::string("iptf://ipfs/nonsense")}) {
    plugin.fs->new_random_access_file(&plugin.self, path.c_str(), &file, &status);
    CHECK(status.code != TF_OK, status);
  }
  TF_WritableFile writable{};
  plugin.fs->new_writable_file(&plugin.self, (base + "/new").c_str(), &writable, &status);
  CHECK(status.code == TF_PERMISSION_DENIED, status);
  char** names = nullptr;
  CHECK(plugin.fs->get_children(&plugin.self, "iptf://mfs/none", &names, &status) < 0, status);
  plugin.fs->path_exists(&plugin.self, (base + "/nothing").c_str(), &status);
  CHECK(status.code == TF_NOT_FOUND, status);
}

void Write(const Plugin& plugin, const std::string& folder) {
  TF_Status status;
  plugin.fs->recursively_create_dir(&plugin.self, (folder + "/a/b").c_str(), &status);
  CHECK(status.code == TF_OK, status);
  const std::string path = folder + "/a/b/file", moved = folder + "/moved";
  const std::string piece(50'000, 'x');
  for (bool append : {false, true}) {
    TF_WritableFile file{};
    (append ? plugin.fs->new_appendable_file : plugin.fs->new_writable_file)(
        &plugin.self, path.c_str(), &file, &status);
    CHECK(status.code == TF_OK, status);
    for (int i = 0; i < 4; ++i) {
      plugin.writable->append(&file, piece.data(), piece.size(), &status);
      CHECK(status.code == TF_OK, status);
    }
    plugin.writable->sync(&file, &status);
    CHECK(status.code == TF_OK, status);
    const int64_t size = static_cast<int64_t>(piece.size());
    const int64_t end = append ? 8 * size + 9 : 4 * size;
    CHECK(plugin.writable->tell(&file, &status) == end, status);
    plugin.writable->append(&file, "kept back", 9, &status);
    // The second is never closed: its cleanup has to do.
    if (!append) plugin.writable->close(&file, &status);
    plugin.writable->cleanup(&file);
    if (!append) continue;
    CHECK(plugin.fs->get_file_size(&plugin.self, path.c_str(), &status) == end + 9, status);
  }
  plugin.fs->rename_file(&plugin.self, path.c_str(), moved.c_str(), &status);
  CHECK(status.code == TF_OK, status);
  ReadTogether(plugin, moved);
  uint64_t files, folders;
  plugin.fs->delete_recursively(&plugin.self, folder.c_str(), &files, &folders, &status);
  CHECK(status.code == TF_OK && files == 0 && folders == 0, status);
}

// A child has connections of its own, and its end closes nothing of its parent's.
void Fork(const Plugin& plugin, const std::string& path) {
  TF_Status status;
  TF_RandomAccessFile file{};
  plugin.fs->new_random_access_file(&plugin.self, path.c_str(), &file, &status);
  CHECK(status.code == TF_OK, status);
  char first[10];
  pid_t child = fork();
  if (child == 0) {
    const bool good = plugin.readable->read(&file, 0, 10, first, &status) == 10;
    plugin.readable->cleanup(&file);
    _exit(good ? 0 : 1);
  }
  int code = 1;
  CHECK(waitpid(child, &code, 0) == child && code == 0, status);
  CHECK(plugin.readable->read(&file, 5, 10, first, &status) == 10, status);
  plugin.readable->cleanup(&file);
}

// A disk that is full, as far as the kernel's refusal goes.
void Overflow(const Plugin& plugin, const std::string& folder) {
  TF_Status status;
  plugin.fs->recursively_create_dir(&plugin.self, folder.c_str(), &status);
  TF_WritableFile file{};
  plugin.fs->new_writable_file(&plugin.self, (folder + "/file").c_str(), &file, &status);
  CHECK(status.code == TF_OK, status);
  signal(SIGXFSZ, SIG_IGN);
  rlimit before, small{1000, RLIM_INFINITY};
  getrlimit(RLIMIT_FSIZE, &before);
  small.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string piece(2000, 'x');
  plugin.writable->append(&file, piece.data(), piece.size(), &status);
  plugin.writable->flush(&file, &status);
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK(status.code == TF_RESOURCE_EXHAUSTED, status);
  plugin.writable->cleanup(&file);
}

int OpenDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 4096; ++fd) count += lseek(fd, 0, SEEK_CUR) >= 0 || errno != EBADF;
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const std::string base = arguments[1], folder = arguments[2];
  Plugin plugin;
  int after_first = 0;
  for (int turn = 0; turn < atoi(arguments[3]); ++turn) {
    Look(plugin, base);
    Fail(plugin, base);
    Write(plugin, folder);
    Overflow(plugin, folder);
    Fork(plugin, base + "/large");
    if (turn == 0) after_first = OpenDescriptors();
  }
  // The pool may still have grown to a connection for each thread; a leak in any turn is more.
  if (OpenDescriptors() > after_first + kThreads) {
    fprintf(stderr, "%d descriptors after the first turn, now %d\n", after_first, OpenDescriptors());
    return 1;
  }
  printf("no leak in %s turns\n", arguments[3]);
  return 0;
}
