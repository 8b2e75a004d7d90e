#ifndef PLANEWISE_CLIENTS_CPP_WEIGHT_DOWNLOAD_H_
#define PLANEWISE_CLIENTS_CPP_WEIGHT_DOWNLOAD_H_
// Puts the messages of ReadWeights together: tensors into the sink's memory,
// each whole, in order and with its checksum.
//
// Not here: the call (client.h).

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "planewise/v1/models.pb.h"

namespace planewise {

// Where ReadWeights puts tensors, one after another. A status that is not OK ends the
// call with it.
class WeightSink {
 public:
  virtual ~WeightSink() = default;
  // Gives memory of header.size_bytes() bytes for a tensor.
  virtual absl::StatusOr<absl::Span<char>> Begin(const v1::ReadTensorHeader& header) = 0;
  // All its bytes are there, and have their checksum.
  virtual absl::Status End(const v1::ReadTensorHeader& header) = 0;
};

// One thread.
class WeightDownload {
 public:
  explicit WeightDownload(WeightSink& sink) : sink_(sink) {}

  // A message and the bytes of its chunk. DATA_LOSS / CHECKSUM_MISMATCH for a damaged
  // tensor, INTERNAL for messages in an order that no daemon sends, else the sink's.
  absl::Status OnMessage(const v1::ReadWeightsResponse& message,
                         absl::Span<const absl::string_view> data);
  // The stream has ended in good order: is everything whole?
  absl::Status OnEnd();

  bool begun() const { return begun_; }

 private:
  absl::Status OnHeader(const v1::ReadTensorHeader& header);
  absl::Status OnChunk(int64_t offset, absl::Span<const absl::string_view> data);
  absl::Status EndIfWhole();

  WeightSink& sink_;
  bool begun_ = false;
  std::optional<v1::ReadTensorHeader> header_;  // of the tensor that is not whole yet
  absl::Span<char> memory_;
  int64_t filled_bytes_ = 0;
};

}  // namespace planewise

#endif  // PLANEWISE_CLIENTS_CPP_WEIGHT_DOWNLOAD_H_
