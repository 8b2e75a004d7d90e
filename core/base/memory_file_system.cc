#include "core/base/memory_file_system.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

Error Failure(Reason reason, absl::string_view operation, absl::string_view path,
              absl::string_view text) {
  return Error(reason, absl::StrCat(operation, " \"", path, "\": ", text)).With("file", path);
}

Error Missing(absl::string_view operation, absl::string_view path) {
  return Failure(Reason::kNotFound, operation, path, "No such file or directory");
}

// Names of the path's parts; "..", as elsewhere, is its parent.
std::vector<std::string> PartsOf(absl::string_view path) {
  std::vector<std::string> parts;
  for (const absl::string_view part : absl::StrSplit(path, '/', absl::SkipEmpty())) {
    if (part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return parts;
}

}  // namespace

struct MemoryFileSystem::Node {
  using Entries = std::map<std::string, std::shared_ptr<Node>>;
  // Names that change together; a null node is a removal.
  using Change = std::vector<std::pair<std::string, std::shared_ptr<Node>>>;

  bool is_directory = false;
  // A file.
  std::string bytes;
  std::string durable_bytes;
  int shared_lock_count = 0;
  bool exclusively_locked = false;
  // A directory.
  Entries entries;
  Entries durable_entries;
  std::vector<Change> unsynced_changes;

  static void Apply(const Change& change, Entries& to) {
    for (const auto& [name, node] : change) {
      if (node == nullptr) {
        to.erase(name);
      } else {
        to[name] = node;
      }
    }
  }
  void Apply(Change change) {
    Apply(change, entries);
    unsynced_changes.push_back(std::move(change));
  }

  void Crash(Unsynced unsynced, std::mt19937_64& random);
};

// What `unsynced` leaves of this node and all below it.
void MemoryFileSystem::Node::Crash(Unsynced unsynced, std::mt19937_64& random) {
  const auto kept_of = [&](size_t count) -> size_t {
    switch (unsynced) {
      case Unsynced::kLost: return 0;
      case Unsynced::kKept: return count;
      case Unsynced::kTorn: return random() % (count + 1);
    }
    return 0;
  };
  if (!is_directory) {
    shared_lock_count = 0;
    exclusively_locked = false;
    const size_t synced = durable_bytes.size();
    if (bytes.size() > synced) {
      const size_t kept = synced + kept_of(bytes.size() - synced);
      // The size may survive where the bytes do not.
      const bool zeros = unsynced == Unsynced::kTorn && random() % 2 == 0;
      const size_t size = zeros ? bytes.size() : kept;
      durable_bytes = bytes.substr(0, kept);
      durable_bytes.resize(size, '\0');
    }
    bytes = durable_bytes;
    return;
  }
  const size_t kept = kept_of(unsynced_changes.size());
  for (size_t i = 0; i < kept; ++i) Apply(unsynced_changes[i], durable_entries);
  unsynced_changes.clear();
  entries = durable_entries;
  for (const auto& [name, node] : entries) node->Crash(unsynced, random);
}

struct MemoryFileSystem::State {
  mutable Mutex mutex;
  std::shared_ptr<Node> root ABSL_GUARDED_BY(mutex) = std::make_shared<Node>();
  uint64_t crash_count ABSL_GUARDED_BY(mutex) = 0;

  // nullptr if there is none.
  std::shared_ptr<Node> Find(absl::string_view path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::shared_ptr<Node> node = root;
    for (const std::string& part : PartsOf(path)) {
      const auto found = node->entries.find(part);
      if (found == node->entries.end()) return nullptr;
      node = found->second;
    }
    return node;
  }

  absl::StatusOr<std::shared_ptr<Node>> FindDirectory(absl::string_view operation,
                                                      absl::string_view path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::shared_ptr<Node> node = Find(path);
    if (node == nullptr || !node->is_directory) return Missing(operation, path);
    return node;
  }

  absl::StatusOr<std::shared_ptr<Node>> FindFile(absl::string_view operation,
                                                 absl::string_view path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::shared_ptr<Node> node = Find(path);
    if (node == nullptr) return Missing(operation, path);
    if (node->is_directory) {
      return Failure(Reason::kInvalidRequest, operation, path, "Is a directory");
    }
    return node;
  }

  // Adds an empty node under a name that must be free.
  absl::StatusOr<std::shared_ptr<Node>> Add(absl::string_view operation, absl::string_view path,
                                            bool is_directory)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    PW_ASSIGN_OR_RETURN(const std::shared_ptr<Node> parent,
                        FindDirectory(operation, DirectoryOf(path)));
    if (Find(path) != nullptr) {
      return Failure(Reason::kAlreadyExists, operation, path, "File exists");
    }
    auto node = std::make_shared<Node>();
    node->is_directory = is_directory;
    parent->Apply({{NameOf(path), node}});
    return node;
  }

  absl::Status CheckAlive(absl::string_view operation, absl::string_view path,
                          uint64_t opened_at) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (opened_at == crash_count) return absl::OkStatus();
    return Failure(Reason::kUnavailable, operation, path, "opened before the crash");
  }
};

class MemoryFileSystem::Readable final : public ReadableFile {
 public:
  Readable(std::shared_ptr<State> state, std::shared_ptr<Node> node, std::string path,
           uint64_t opened_at)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)),
        opened_at_(opened_at) {}

  absl::StatusOr<int64_t> SizeBytes() const override {
    MutexLock lock(state_->mutex);
    PW_RETURN_IF_ERROR(state_->CheckAlive("stat", path_, opened_at_));
    return static_cast<int64_t>(node_->bytes.size());
  }

  absl::Status Read(int64_t offset, absl::Span<std::byte> destination) const override {
    MutexLock lock(state_->mutex);
    PW_RETURN_IF_ERROR(state_->CheckAlive("read", path_, opened_at_));
    const int64_t size = static_cast<int64_t>(node_->bytes.size());
    const int64_t wanted = static_cast<int64_t>(destination.size());
    const int64_t available = offset > size ? 0 : size - offset;
    if (wanted > available) {
      return Error(Reason::kCorruptFile,
                   absl::StrCat("\"", path_, "\" ends at byte ", size, "; ", wanted - available,
                                " more bytes were expected"))
          .With("file", path_)
          .With("byteOffset", size);
    }
    if (wanted > 0) std::memcpy(destination.data(), node_->bytes.data() + offset, wanted);
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
  const uint64_t opened_at_;
};

class MemoryFileSystem::Writable final : public WritableFile {
 public:
  Writable(std::shared_ptr<State> state, std::shared_ptr<Node> node, std::string path,
           uint64_t opened_at)
      : state_(std::move(state)), node_(std::move(node)), path_(std::move(path)),
        opened_at_(opened_at) {}

  absl::Status Preallocate(int64_t size_bytes) override {
    MutexLock lock(state_->mutex);
    PW_RETURN_IF_ERROR(state_->CheckAlive("preallocate", path_, opened_at_));
    node_->bytes.resize(static_cast<size_t>(size_bytes), '\0');
    return absl::OkStatus();
  }

  absl::Status Append(absl::Span<const std::byte> data) override {
    MutexLock lock(state_->mutex);
    PW_RETURN_IF_ERROR(state_->CheckAlive("write", path_, opened_at_));
    if (data.empty()) return absl::OkStatus();
    if (end_ + data.size() > node_->bytes.size()) node_->bytes.resize(end_ + data.size());
    std::memcpy(node_->bytes.data() + end_, data.data(), data.size());
    end_ += data.size();
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    MutexLock lock(state_->mutex);
    PW_RETURN_IF_ERROR(state_->CheckAlive("sync", path_, opened_at_));
    node_->durable_bytes = node_->bytes;
    return absl::OkStatus();
  }

  absl::Status Close() override {
    MutexLock lock(state_->mutex);
    return state_->CheckAlive("close", path_, opened_at_);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Node> node_;
  const std::string path_;
  const uint64_t opened_at_;
  size_t end_ = 0;  // of what was appended; preallocated bytes follow
};

class MemoryFileSystem::HeldLock final : public FileLock {
 public:
  HeldLock(std::shared_ptr<State> state, std::shared_ptr<Node> node, LockMode mode,
           uint64_t taken_at)
      : state_(std::move(state)), node_(std::move(node)), mode_(mode), taken_at_(taken_at) {}

  ~HeldLock() override {
    MutexLock lock(state_->mutex);
    if (taken_at_ != state_->crash_count) return;  // The crash freed it.
    if (mode_ == LockMode::kExclusive) {
      node_->exclusively_locked = false;
    } else {
      --node_->shared_lock_count;
    }
  }

 private:
  const std::shared_ptr<State> state_;
  const std::shared_ptr<Node> node_;
  const LockMode mode_;
  const uint64_t taken_at_;
};

MemoryFileSystem::MemoryFileSystem() : state_(std::make_shared<State>()) {
  MutexLock lock(state_->mutex);
  state_->root->is_directory = true;
}

MemoryFileSystem::~MemoryFileSystem() = default;

void MemoryFileSystem::Crash(Unsynced unsynced, uint64_t seed) {
  MutexLock lock(state_->mutex);
  std::mt19937_64 random(seed);
  state_->root->Crash(unsynced, random);
  ++state_->crash_count;
}

std::string MemoryFileSystem::Contents(absl::string_view path) const {
  MutexLock lock(state_->mutex);
  return state_->Find(path)->bytes;
}

void MemoryFileSystem::SetContents(absl::string_view path, std::string bytes) {
  MutexLock lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->Find(path);
  node->durable_bytes = bytes;
  node->bytes = std::move(bytes);
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenForRead(
    absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_ASSIGN_OR_RETURN(std::shared_ptr<Node> node, state_->FindFile("open", path));
  return std::make_unique<Readable>(state_, std::move(node), std::string(path),
                                    state_->crash_count);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Create(absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_ASSIGN_OR_RETURN(std::shared_ptr<Node> node, state_->Add("create", path, false));
  return std::make_unique<Writable>(state_, std::move(node), std::string(path),
                                    state_->crash_count);
}

absl::Status MemoryFileSystem::Rename(absl::string_view from, absl::string_view to) {
  MutexLock lock(state_->mutex);
  if (PartsOf(DirectoryOf(from)) != PartsOf(DirectoryOf(to))) {
    return Error(Reason::kInvalidRequest, absl::StrCat("rename \"", from, "\" to \"", to,
                                                       "\": not in the same directory"));
  }
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Node> parent,
                      state_->FindDirectory("rename", DirectoryOf(from)));
  const std::shared_ptr<Node> node = state_->Find(from);
  if (node == nullptr) return Missing("rename", from);
  const std::shared_ptr<Node> replaced = state_->Find(to);
  if (replaced != nullptr && (replaced->is_directory || node->is_directory)) {
    return Failure(Reason::kInvalidRequest, "rename", to, "a directory is in the way");
  }
  parent->Apply({{NameOf(from), nullptr}, {NameOf(to), node}});
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Node> node,
                      state_->FindDirectory("sync directory", path));
  node->durable_entries = node->entries;
  node->unsynced_changes.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::List(absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Node> node, state_->FindDirectory("list", path));
  std::vector<std::string> names;
  for (const auto& [name, entry] : node->entries) names.push_back(name);
  return names;
}

absl::StatusOr<FileInfo> MemoryFileSystem::Stat(absl::string_view path) {
  MutexLock lock(state_->mutex);
  const std::shared_ptr<Node> node = state_->Find(path);
  if (node == nullptr) return Missing("stat", path);
  return FileInfo{node->is_directory, static_cast<int64_t>(node->bytes.size())};
}

absl::StatusOr<bool> MemoryFileSystem::Exists(absl::string_view path) {
  MutexLock lock(state_->mutex);
  return state_->Find(path) != nullptr;
}

absl::Status MemoryFileSystem::Remove(absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_RETURN_IF_ERROR(state_->FindFile("remove", path).status());
  state_->Find(DirectoryOf(path))->Apply({{NameOf(path), nullptr}});
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::RemoveDirectory(absl::string_view path) {
  MutexLock lock(state_->mutex);
  PW_ASSIGN_OR_RETURN(const std::shared_ptr<Node> node,
                      state_->FindDirectory("remove directory", path));
  if (!node->entries.empty()) {
    return Failure(Reason::kInvalidRequest, "remove directory", path, "Directory not empty");
  }
  state_->Find(DirectoryOf(path))->Apply({{NameOf(path), nullptr}});
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::MakeDirectory(absl::string_view path) {
  MutexLock lock(state_->mutex);
  return state_->Add("make directory", path, true).status();
}

absl::StatusOr<std::string> MemoryFileSystem::Resolve(absl::string_view path) {
  MutexLock lock(state_->mutex);
  if (state_->Find(path) == nullptr) return Missing("resolve", path);
  return absl::StrCat("/", absl::StrJoin(PartsOf(path), "/"));
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::Lock(absl::string_view path,
                                                                 LockMode mode) {
  MutexLock lock(state_->mutex);
  std::shared_ptr<Node> node = state_->Find(path);
  const bool exclusive = mode == LockMode::kExclusive;
  if (node == nullptr && !exclusive) return Missing("lock", path);
  if (node == nullptr) {
    PW_ASSIGN_OR_RETURN(node, state_->Add("lock", path, false));
  }
  if (node->exclusively_locked || (exclusive && node->shared_lock_count > 0)) {
    return Failure(Reason::kStoreLocked, "lock", path, "held by another process or user of it");
  }
  if (exclusive) {
    node->exclusively_locked = true;
  } else {
    ++node->shared_lock_count;
  }
  return std::make_unique<HeldLock>(state_, std::move(node), mode, state_->crash_count);
}

}  // namespace planewise
