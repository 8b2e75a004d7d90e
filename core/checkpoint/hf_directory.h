#ifndef PLANEWISE_CORE_CHECKPOINT_HF_DIRECTORY_H_
#define PLANEWISE_CORE_CHECKPOINT_HF_DIRECTORY_H_
// A Hugging Face model directory: config.json beside model.safetensors, or
// beside model.safetensors.index.json and its shards. Nothing missing, doubled
// or guessed: what does not add up is refused with file and tensor named.
//
// Not here: the meaning of config.json (planner/hf_config_reader.h), the
// conversion of tensors.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/base/file_system.h"
#include "core/checkpoint/hf_index.h"
#include "core/checkpoint/safetensors_reader.h"
#include "core/numeric/dtype.h"

namespace planewise {

inline constexpr int64_t kHfConfigBytesMax = 16 << 20;
inline constexpr int64_t kHfIndexBytesMax = 100'000'000;

// Which weights to take where a single file and an index are both present.
enum class HfWeights : uint8_t { kOnlyOne, kSingleFile, kSharded };

struct HfOpenOptions {
  HfWeights weights = HfWeights::kOnlyOne;
  // Every file must lie below one of these once links are followed; empty: no
  // limit. Paths as FileSystem::Resolve gives them.
  std::vector<std::string> roots;
};

struct HfTensor {
  std::string name;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
  std::string file;    // within the directory
  int64_t offset = 0;  // from the start of that file
  int64_t length = 0;  // bytes

  bool operator==(const HfTensor&) const = default;
};

// Movable. Reads are thread-safe.
class HfDirectory {
 public:
  // Reads config.json, the index and every header; no tensor.
  // INVALID_ARGUMENT / INVALID_CHECKPOINT: missing config.json or weights; both
  // a single file and an index, unless `options` chooses; an index that names a
  // missing shard, a file outside the directory, or a tensor that its shard
  // lacks; a shard that is truncated or malformed; a name in two shards.
  // PATH_OUTSIDE_ROOTS. NOT_FOUND if `directory` does not exist.
  static absl::StatusOr<HfDirectory> Open(FileSystem& file_system, absl::string_view directory,
                                          const HfOpenOptions& options);

  const std::string& path() const { return path_; }
  const std::string& config_json() const { return config_json_; }
  // By name.
  absl::Span<const HfTensor> tensors() const { return tensors_; }
  // nullptr if there is none of that name.
  const HfTensor* Find(absl::string_view name) const;
  // For people: files that were ignored, tensors that the index leaves out.
  absl::Span<const std::string> notes() const { return notes_; }

  // Fills `destination` from byte `offset` of the tensor on.
  // INVALID_CHECKPOINT if the range leaves the tensor or the file became
  // shorter since it was opened.
  absl::Status Read(const HfTensor& tensor, int64_t offset,
                    absl::Span<std::byte> destination) const;

 private:
  HfDirectory() = default;
  absl::Status OpenFile(FileSystem& file_system, const std::string& name,
                        const std::vector<std::string>& roots);
  void TakeTensors(const std::string& file);
  absl::Status TakeShards(const HfWeightMap& weight_map);
  void NoteIgnoredFiles(const std::vector<std::string>& names);

  std::string path_;
  std::string config_json_;
  std::map<std::string, SafetensorsReader> files_;  // by file name
  std::vector<HfTensor> tensors_;
  std::vector<std::string> notes_;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_HF_DIRECTORY_H_
