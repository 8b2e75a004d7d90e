// Hostile bytes for Split. Invariants, for any bytes in slices of any size:
//  1. Split takes them for a frame exactly if protobuf does. (The naive model.)
//  2. The frame then says the same, tensor bytes included.
//  3. MakeFrame writes that frame as protobuf does.
// The first byte of the input is the size of the slices.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "planewise/v1/session.pb.h"
#include "proto/frame/frame_codec.h"
#include "tests/testing/fuzz_check.h"

namespace planewise {
namespace {

std::string Join(const std::vector<grpc::Slice>& slices) {
  std::string joined;
  for (const grpc::Slice& slice : slices) {
    joined.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return joined;
}

grpc::ByteBuffer InSlices(absl::string_view bytes, size_t size) {
  std::vector<grpc::Slice> slices;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(size, bytes.size()))) {
    slices.emplace_back(bytes.data(), std::min(size, bytes.size()));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

void CheckFrame(const std::string& bytes, size_t slice_size) {
  v1::ClientFrame parsed;
  const bool is_frame = parsed.ParseFromString(bytes);
  const auto split = Split<v1::ClientFrame>(InSlices(bytes, slice_size));
  FuzzCheck(split.ok() == is_frame, "1: takes the bytes for a frame exactly if protobuf does");
  if (!is_frame) return;

  v1::ClientFrame whole = split->header;
  const std::string data = Join(split->data);
  if (!data.empty()) whole.mutable_chunk()->set_data(data);
  FuzzCheck(whole.SerializeAsString() == parsed.SerializeAsString(), "2: says the same");

  // Unknown fields keep their place after the known ones, so MakeFrame's data, which is
  // last, stands elsewhere than protobuf's.
  whole.DiscardUnknownFields();
  v1::ClientFrame header = whole;
  if (header.has_chunk()) header.mutable_chunk()->clear_data();
  std::vector<grpc::Slice> made;
  FuzzCheck(MakeFrame(header, grpc::Slice(data)).Dump(&made).ok(), "MakeFrame makes a buffer");
  FuzzCheck(Join(made) == whole.SerializeAsString(), "3: writes what protobuf writes");
}

}  // namespace
}  // namespace planewise

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  planewise::CheckFrame(std::string(reinterpret_cast<const char*>(data) + 1, size - 1),
                        data[0] == 0 ? size : data[0]);
  return 0;
}
