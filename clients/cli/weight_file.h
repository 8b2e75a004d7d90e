#ifndef PLANEWISE_CLIENTS_CLI_WEIGHT_FILE_H_
#define PLANEWISE_CLIENTS_CLI_WEIGHT_FILE_H_
// Writes downloaded weights to one safetensors file, however large they are
// together: tensors are spooled to a file beside it, one in memory at a time,
// since a safetensors header needs all of their shapes first.
//
// Names of tensors in the file: the weight's name for dequantized and
// high-precision tensors, "<weight>#row.payload" and so on for planes.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "clients/cli/progress_bar.h"
#include "clients/cpp/weight_download.h"
#include "core/base/file_system.h"
#include "core/checkpoint/safetensors_writer.h"

namespace planewise {

// One thread. The destructor removes the spool, and a file that was not finished.
class WeightFile final : public WeightSink {
 public:
  // ALREADY_EXISTS if there is a file of that name.
  static absl::StatusOr<std::unique_ptr<WeightFile>> Create(FileSystem& file_system,
                                                            absl::string_view path);
  ~WeightFile() override;

  absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader& header) override;
  absl::Status End(const v1::ReadTensorHeader& header) override;

  // Writes the file; returns its size in bytes. FAILED_PRECONDITION / NOT_FOUND if
  // nothing was downloaded.
  absl::StatusOr<int64_t> Finish();

  int64_t tensor_count() const { return static_cast<int64_t>(tensors_.size()); }

 private:
  struct Spooled {
    SafetensorsTensor tensor;
    int64_t offset = 0;  // in the spool
    int64_t size_bytes = 0;
  };

  WeightFile(FileSystem& file_system, absl::string_view path, std::unique_ptr<WritableFile> spool);
  const Spooled& Find(absl::string_view name) const;

  FileSystem& file_system_;
  const std::string path_;
  std::unique_ptr<WritableFile> spool_;
  int64_t spooled_bytes_ = 0;
  std::vector<char> memory_;  // the tensor that is arriving
  std::vector<Spooled> tensors_;
  ProgressBar bar_;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CLI_WEIGHT_FILE_H_
