// TensorFlow's table of operations for ipfs:// and iptf://, each a request to the gate.
#include <stdlib.h>

#include <vector>

#include "gate.h"
#include "reading.h"
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "writing.h"

namespace iptf {
namespace {

void* Allocate(size_t size) { return calloc(1, size); }

char* Copy(const std::string& text) {
  char* copy = static_cast<char*>(Allocate(text.size() + 1));
  memcpy(copy, text.data(), text.size());
  return copy;
}

Answer Ask(Op op, const char* path) { return Gate::Get().Call(std::move(Request(op).Text(path))); }

// ---- files

void CleanUpReadable(TF_RandomAccessFile* file) {
  delete static_cast<ReadableFile*>(file->plugin_file);
}

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
             TF_Status* status) {
  return static_cast<ReadableFile*>(file->plugin_file)->Read(offset, n, buffer, status);
}

WritableFile* Writable(const TF_WritableFile* file) {
  return static_cast<WritableFile*>(file->plugin_file);
}

void CleanUpWritable(TF_WritableFile* file) { delete Writable(file); }

void Append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  Writable(file)->Append(buffer, n, status);
}

int64_t Tell(const TF_WritableFile* file, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return Writable(file)->Tell();
}

void Flush(const TF_WritableFile* file, TF_Status* status) { Writable(file)->Flush(status); }
void Sync(const TF_WritableFile* file, TF_Status* status) { Writable(file)->Sync(status); }
void Close(const TF_WritableFile* file, TF_Status* status) { Writable(file)->Close(status); }

struct Region {
  std::unique_ptr<ReadableFile> file;
  const char* data;
};

Region* RegionOf(const TF_ReadOnlyMemoryRegion* region) {
  return static_cast<Region*>(region->plugin_memory_region);
}

void CleanUpRegion(TF_ReadOnlyMemoryRegion* region) { delete RegionOf(region); }
const void* RegionData(const TF_ReadOnlyMemoryRegion* region) { return RegionOf(region)->data; }
uint64_t RegionLength(const TF_ReadOnlyMemoryRegion* region) {
  return RegionOf(region)->file->size();
}

// ---- the file system: opening

void Init(TF_Filesystem*, TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }
void CleanUp(TF_Filesystem*) {}

void NewRandomAccessFile(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file,
                         TF_Status* status) {
  file->plugin_file = ReadableFile::Open(path, status).release();
}

void NewWritableFile(const TF_Filesystem*, const char* path, TF_WritableFile* file,
                     TF_Status* status) {
  file->plugin_file = WritableFile::Open(path, /*append=*/false, status).release();
}

void NewAppendableFile(const TF_Filesystem*, const char* path, TF_WritableFile* file,
                       TF_Status* status) {
  file->plugin_file = WritableFile::Open(path, /*append=*/true, status).release();
}

void NewRegion(const TF_Filesystem*, const char* path, TF_ReadOnlyMemoryRegion* region,
               TF_Status* status) {
  std::unique_ptr<ReadableFile> file = ReadableFile::Open(path, status);
  if (file == nullptr) return;
  if (file->size() == 0) {
    const std::string why = std::string(path) + " is empty and cannot be a memory region";
    TF_SetStatus(status, TF_INVALID_ARGUMENT, why.c_str());
    return;
  }
  const char* data = file->Whole(status);
  if (data == nullptr) return;
  region->plugin_memory_region = new Region{std::move(file), data};
  TF_SetStatus(status, TF_OK, "");
}

// ---- the file system: looking

bool StatOf(const char* path, TF_FileStatistics* stats, TF_Status* status) {
  Answer answer = Ask(Op::kStat, path);
  TF_FileStatistics found{};
  if (answer.ok()) {
    found.is_directory = answer.U8() != 0;
    found.length = static_cast<int64_t>(answer.U64());
    found.mtime_nsec = static_cast<int64_t>(answer.U64());
  }
  if (!SetStatus(answer, status)) return false;
  *stats = found;
  return true;
}

void Stat(const TF_Filesystem*, const char* path, TF_FileStatistics* stats, TF_Status* status) {
  StatOf(path, stats, status);
}

void PathExists(const TF_Filesystem*, const char* path, TF_Status* status) {
  TF_FileStatistics stats;
  // A path that goes on below a file is a plain no, as it is on a local disk.
  if (!StatOf(path, &stats, status) && TF_GetCode(status) == TF_FAILED_PRECONDITION) {
    TF_SetStatus(status, TF_NOT_FOUND, (std::string(path) + " does not exist").c_str());
  }
}

bool IsDirectory(const TF_Filesystem*, const char* path, TF_Status* status) {
  TF_FileStatistics stats;
  if (!StatOf(path, &stats, status)) return false;
  // TensorFlow looks at the status alone, whatever the header says of the result.
  if (!stats.is_directory) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, (std::string(path) + " is a file").c_str());
  }
  return stats.is_directory;
}

int64_t GetFileSize(const TF_Filesystem*, const char* path, TF_Status* status) {
  TF_FileStatistics stats;
  if (!StatOf(path, &stats, status)) return -1;
  if (stats.is_directory) {
    TF_SetStatus(status, TF_FAILED_PRECONDITION, (std::string(path) + " is a directory").c_str());
    return -1;
  }
  return stats.length;
}

int Names(Op op, const char* path, char*** entries, TF_Status* status) {
  Answer answer = Ask(op, path);
  std::vector<std::string> names;
  if (answer.ok()) {
    const uint32_t count = answer.U32();
    for (uint32_t i = 0; i < count && answer.whole(); ++i) names.push_back(answer.Text());
  }
  if (!SetStatus(answer, status)) return -1;
  *entries = static_cast<char**>(Allocate((names.size() + 1) * sizeof(char*)));
  for (size_t i = 0; i < names.size(); ++i) (*entries)[i] = Copy(names[i]);
  return static_cast<int>(names.size());
}

int GetChildren(const TF_Filesystem*, const char* path, char*** entries, TF_Status* status) {
  return Names(Op::kList, path, entries, status);
}

int GetMatchingPaths(const TF_Filesystem*, const char* glob, char*** entries, TF_Status* status) {
  return Names(Op::kMatch, glob, entries, status);
}

// The default would take the CID for a host name and drop it.
char* TranslateName(const TF_Filesystem*, const char* uri) { return Copy(uri); }

// ---- the file system: changing

void Change(Answer answer, TF_Status* status) { SetStatus(answer, status); }

void MakeDir(const TF_Filesystem*, const char* path, TF_Status* status) {
  Change(Gate::Get().Call(std::move(Request(Op::kMakeDir).Text(path).U8(0))), status);
}

void MakeDirs(const TF_Filesystem*, const char* path, TF_Status* status) {
  Change(Gate::Get().Call(std::move(Request(Op::kMakeDir).Text(path).U8(1))), status);
}

void DeleteFile(const TF_Filesystem*, const char* path, TF_Status* status) {
  Change(Ask(Op::kRemoveFile, path), status);
}

void DeleteDir(const TF_Filesystem*, const char* path, TF_Status* status) {
  Change(Ask(Op::kRemoveDir, path), status);
}

void DeleteRecursively(const TF_Filesystem*, const char* path, uint64_t* undeleted_files,
                       uint64_t* undeleted_dirs, TF_Status* status) {
  Answer answer = Ask(Op::kRemoveTree, path);
  *undeleted_files = 0;
  *undeleted_dirs = answer.ok() ? 0 : 1;
  SetStatus(answer, status);
}

void RenameFile(const TF_Filesystem*, const char* source, const char* target, TF_Status* status) {
  Change(Gate::Get().Call(std::move(Request(Op::kRename).Text(source).Text(target))), status);
}

void Provide(TF_FilesystemPluginOps* ops, const char* scheme) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = Copy(scheme);

  auto* readable = static_cast<TF_RandomAccessFileOps*>(Allocate(TF_RANDOM_ACCESS_FILE_OPS_SIZE));
  readable->cleanup = CleanUpReadable;
  readable->read = Read;
  ops->random_access_file_ops = readable;

  auto* writable = static_cast<TF_WritableFileOps*>(Allocate(TF_WRITABLE_FILE_OPS_SIZE));
  writable->cleanup = CleanUpWritable;
  writable->append = Append;
  writable->tell = Tell;
  writable->flush = Flush;
  writable->sync = Sync;
  writable->close = Close;
  ops->writable_file_ops = writable;

  auto* region =
      static_cast<TF_ReadOnlyMemoryRegionOps*>(Allocate(TF_READ_ONLY_MEMORY_REGION_OPS_SIZE));
  region->cleanup = CleanUpRegion;
  region->data = RegionData;
  region->length = RegionLength;
  ops->read_only_memory_region_ops = region;

  auto* files = static_cast<TF_FilesystemOps*>(Allocate(TF_FILESYSTEM_OPS_SIZE));
  files->init = Init;
  files->cleanup = CleanUp;
  files->new_random_access_file = NewRandomAccessFile;
  files->new_writable_file = NewWritableFile;
  files->new_appendable_file = NewAppendableFile;
  files->new_read_only_memory_region_from_file = NewRegion;
  files->create_dir = MakeDir;
  files->recursively_create_dir = MakeDirs;
  files->delete_file = DeleteFile;
  files->delete_dir = DeleteDir;
  files->delete_recursively = DeleteRecursively;
  files->rename_file = RenameFile;
  files->path_exists = PathExists;
  files->stat = Stat;
  files->is_directory = IsDirectory;
  files->get_file_size = GetFileSize;
  files->translate_name = TranslateName;
  files->get_children = GetChildren;
  files->get_matching_paths = GetMatchingPaths;
  ops->filesystem_ops = files;
}

}  // namespace
}  // namespace iptf

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(
    TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = iptf::Allocate;
  info->plugin_memory_free = free;
  info->num_schemes = 2;
  info->ops = static_cast<TF_FilesystemPluginOps*>(
      iptf::Allocate(info->num_schemes * sizeof(TF_FilesystemPluginOps)));
  iptf::Provide(&info->ops[0], "ipfs");
  iptf::Provide(&info->ops[1], "iptf");
  // Made now, so that what a fork in the middle of the first request would break is never broken.
  iptf::Gate::Get();
  atexit(iptf::ReadableFile::ReportAll);
}
