#include "core/checkpoint/version_verifier.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/safetensors_header.h"
#include "core/checkpoint/scale_check.h"
#include "core/checkpoint/segment_reader.h"
#include "core/tensor/host_buffer.h"
#include "core/tensor/plane_layout.h"

namespace planewise {
namespace {

int64_t LengthOf(const std::optional<StoredPart>& part) { return part ? part->length : 0; }

// Room for a plane, and for a payload that it shares.
int64_t BytesToCheck(const StoredWeight& weight) {
  int64_t payload = 0;
  int64_t rest = 0;
  for (const StoredPlane& plane : weight.planes) {
    payload = std::max(payload, LengthOf(plane.payload));
    rest = std::max(rest, LengthOf(plane.scales) + LengthOf(plane.state));
  }
  return payload + rest;
}

int64_t LargestBytesToCheck(const Manifest& manifest) {
  int64_t largest = 0;
  for (const StoredPartView& part : manifest.Parts()) {
    largest = std::max(largest, BytesToCheck(*part.weight));
  }
  return largest;
}

class Verifier {
 public:
  Verifier(FileSystem& file_system, absl::string_view segments, const Manifest& manifest,
           HostBuffer buffer, TransferMeter& meter)
      : file_system_(file_system),
        segments_(segments),
        manifest_(manifest),
        buffer_(std::move(buffer)),
        meter_(meter) {}

  absl::StatusOr<VerifyReport> Run() && {
    report_.version = manifest_.version;
    for (const StoredSegment& segment : manifest_.segments) {
      PW_RETURN_IF_ERROR(CheckSegment(segment));
    }
    for (const StoredLayer& layer : manifest_.layers) {
      PW_RETURN_IF_ERROR(CheckWeight(layer.weight));
      if (layer.bias) {
        PW_RETURN_IF_ERROR(CheckWeight(*layer.bias));
      }
    }
    return std::move(report_);
  }

 private:
  // Damage becomes a finding and yields false; what else failed ends the run.
  absl::StatusOr<bool> IsSound(const absl::Status& status, std::string object) {
    if (status.ok()) return true;
    if (status.code() != absl::StatusCode::kDataLoss) return status;
    report_.damage.Update(status);
    report_.findings.push_back(FindingOf(std::move(object), status));
    return false;
  }

  absl::Status CheckSegment(const StoredSegment& segment) {
    absl::StatusOr<SegmentReader> reader = SegmentReader::Open(file_system_, segments_, segment);
    PW_ASSIGN_OR_RETURN(const bool sound, IsSound(reader.status(), segment.file));
    if (!sound) {
      readers_.push_back(std::nullopt);
      return absl::OkStatus();
    }
    report_.checked_bytes += segment.header_bytes;
    CheckHeader(segment, *reader);
    readers_.push_back(*std::move(reader));
    return absl::OkStatus();
  }

  // Other readers find every part where the manifest places it.
  void CheckHeader(const StoredSegment& segment, const SegmentReader& reader) {
    const absl::string_view header = reader.header_bytes();
    const absl::StatusOr<SafetensorsHeader> parsed = ParseSafetensorsHeader(
        reader.path(), segment.file_bytes,
        header.substr(std::min<size_t>(kSafetensorsLengthBytes, header.size())));
    if (!parsed.ok()) {
      report_.findings.push_back(
          {segment.file, reader.path(), 0, std::string(parsed.status().message())});
      return;
    }
    absl::flat_hash_map<absl::string_view, const SafetensorsEntry*> entries;
    for (const SafetensorsEntry& entry : parsed->tensors) entries[entry.name] = &entry;
    for (const StoredPartView& part : manifest_.Parts()) {
      const StoredPart& stored = *part.stored;
      if (&manifest_.segments[static_cast<size_t>(stored.segment)] != &segment) continue;
      const auto found = entries.find(part.name());
      if (found == entries.end() || found->second->offset != stored.offset ||
          found->second->length != stored.length) {
        report_.findings.push_back(
            {part.name(), reader.path(), stored.offset,
             "the segment's header does not place it where the manifest does"});
      }
    }
  }

  absl::Status CheckWeight(const StoredWeight& weight) {
    for (const StoredPlane& plane : weight.planes) {
      PW_RETURN_IF_ERROR(CheckPlane(weight, plane));
    }
    return absl::OkStatus();
  }

  // Of a weight in order: where a column plane shares the row plane's payload, that
  // is still in the buffer.
  absl::Status CheckPlane(const StoredWeight& weight, const StoredPlane& plane) {
    PW_ASSIGN_OR_RETURN(const PlaneLayout layout, weight.LayoutOf(plane.kind));
    absl::Span<std::byte> room = buffer_.mutable_bytes();
    if (!plane.payload) room.remove_prefix(payload_length_);
    ConstPlaneSpan span{layout, reinterpret_cast<const uint8_t*>(buffer_.data())};
    for (const PlanePart part : kPlaneParts) {
      const std::optional<StoredPart>& stored = plane.part(part);
      if (!stored) continue;
      const absl::Span<std::byte> bytes = room.subspan(0, static_cast<size_t>(stored->length));
      room.remove_prefix(bytes.size());
      PW_ASSIGN_OR_RETURN(const bool sound, CheckPart({&weight, &plane, part, &*stored}, bytes));
      switch (part) {
        case PlanePart::kPayload:
          payload_sound_ = sound;
          payload_length_ = bytes.size();
          break;
        case PlanePart::kScales:
          if (sound) span.scales = reinterpret_cast<const uint8_t*>(bytes.data());
          break;
        case PlanePart::kState:
          if (sound) {
            AddFault({&weight, &plane, part, &*stored}, StateFaultOf(weight.format, bytes));
          }
          break;
      }
    }
    if (!payload_sound_ || span.scales == nullptr) return absl::OkStatus();
    const StoredPartView scales{&weight, &plane, PlanePart::kScales, &*plane.scales};
    for (const ScaleFault& fault : ScaleFaultsOf(span, plane.exponents)) AddFault(scales, fault);
    return absl::OkStatus();
  }

  void AddFault(const StoredPartView& part, const std::optional<ScaleFault>& fault) {
    if (!fault) return;
    report_.findings.push_back({part.name(), ReaderOf(part)->path(),
                                part.stored->offset + fault->byte_offset, fault->text});
  }

  // Reads a part; false if it is not as written.
  absl::StatusOr<bool> CheckPart(const StoredPartView& part, absl::Span<std::byte> destination) {
    ++report_.tensor_count;
    const std::optional<SegmentReader>& reader = ReaderOf(part);
    if (!reader) return false;  // The segment is a finding already.
    report_.checked_bytes += part.stored->length;
    return IsSound(reader->Read(part, destination, meter_), part.name());
  }

  const std::optional<SegmentReader>& ReaderOf(const StoredPartView& part) const {
    return readers_[static_cast<size_t>(part.stored->segment)];
  }

  FileSystem& file_system_;
  const absl::string_view segments_;
  const Manifest& manifest_;
  HostBuffer buffer_;          // holds one plane, and the payload that it shares
  size_t payload_length_ = 0;  // of the payload at the buffer's start
  bool payload_sound_ = false;
  TransferMeter& meter_;
  std::vector<std::optional<SegmentReader>> readers_;  // nullopt: damaged
  VerifyReport report_;
};

}  // namespace

VerifyFinding FindingOf(std::string object, const absl::Status& damage) {
  VerifyFinding finding;
  finding.object = std::move(object);
  finding.text = std::string(damage.message());
  const ErrorDetails details = DetailsOf(damage).value_or(ErrorDetails());
  if (const std::string* file = details.Find("file")) finding.file = *file;
  const std::string* offset = details.Find("byteOffset");
  if (offset == nullptr || !absl::SimpleAtoi(*offset, &finding.byte_offset)) {
    finding.byte_offset = 0;
  }
  return finding;
}

absl::StatusOr<VerifyReport> VerifyVersion(FileSystem& file_system, absl::string_view segments,
                                           const Manifest& manifest, MemoryBudget& budget,
                                           const TransferControl& control) {
  const std::string what = absl::StrCat("verification of model \"", manifest.model, "\"");
  PW_ASSIGN_OR_RETURN(HostBuffer buffer,
                      HostBuffer::AllocateUninitialized(budget, MemoryUse::kTransient,
                                                        LargestBytesToCheck(manifest), what));
  TransferMeter meter(control, what, manifest.stored_bytes());
  return Verifier(file_system, segments, manifest, std::move(buffer), meter).Run();
}

}  // namespace planewise
