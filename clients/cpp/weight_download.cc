#include "clients/cpp/weight_download.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "xxhash.h"

namespace planewise {
namespace {

absl::Status BrokenStream(absl::string_view what) {
  return Error(Reason::kInternal,
               absl::StrCat("read weights: ", what, "; the daemon breaks its protocol: report it"));
}

}  // namespace

absl::Status WeightDownload::OnMessage(const v1::ReadWeightsResponse& message,
                                       absl::Span<const absl::string_view> data) {
  if (message.has_header()) return OnHeader(message.header());
  if (message.has_chunk()) return OnChunk(message.chunk().offset(), data);
  return absl::OkStatus();  // Of a newer minor version.
}

absl::Status WeightDownload::OnHeader(const v1::ReadTensorHeader& header) {
  if (header_) {
    return BrokenStream(absl::StrCat("a new tensor begins when weight \"", header_->weight(),
                                     "\" has ", filled_bytes_, " of ", header_->size_bytes(),
                                     " bytes"));
  }
  if (header.size_bytes() < 0) {
    return BrokenStream(
        absl::StrCat("weight \"", header.weight(), "\" of ", header.size_bytes(), " bytes"));
  }
  begun_ = true;
  PW_ASSIGN_OR_RETURN(memory_, sink_.Begin(header));
  if (memory_.size() != static_cast<size_t>(header.size_bytes())) {
    return Error(Reason::kShapeMismatch,
                 absl::StrCat("weight \"", header.weight(), "\": memory of ", memory_.size(),
                              " bytes given, required ", header.size_bytes()));
  }
  header_ = header;
  filled_bytes_ = 0;
  return EndIfWhole();
}

absl::Status WeightDownload::OnChunk(int64_t offset, absl::Span<const absl::string_view> data) {
  if (!header_ || offset != filled_bytes_) {
    return BrokenStream(absl::StrCat("a chunk at offset ", offset, ", required ", filled_bytes_));
  }
  for (const absl::string_view piece : data) {
    if (piece.size() > memory_.size() - filled_bytes_) {
      return BrokenStream(absl::StrCat("more bytes than weight \"", header_->weight(),
                                       "\" has: ", header_->size_bytes()));
    }
    std::copy(piece.begin(), piece.end(), memory_.begin() + filled_bytes_);
    filled_bytes_ += piece.size();
  }
  return EndIfWhole();
}

absl::Status WeightDownload::EndIfWhole() {
  if (filled_bytes_ < header_->size_bytes()) return absl::OkStatus();
  const uint64_t checksum = XXH3_64bits(memory_.data(), memory_.size());
  if (checksum != header_->checksum()) {
    return Error(Reason::kChecksumMismatch,
                 absl::StrFormat("weight \"%s\", %s: the bytes received have checksum %016x, "
                                 "required %016x; read it again",
                                 header_->weight(), v1::PlanePart_Name(header_->part()), checksum,
                                 header_->checksum()))
        .With("weight", header_->weight());
  }
  const v1::ReadTensorHeader header = *std::move(header_);
  header_.reset();
  return sink_.End(header);
}

absl::Status WeightDownload::OnEnd() {
  if (!header_) return absl::OkStatus();
  return BrokenStream(absl::StrCat("it ended when weight \"", header_->weight(), "\" had ",
                                   filled_bytes_, " of ", header_->size_bytes(), " bytes"));
}

}  // namespace planewise
