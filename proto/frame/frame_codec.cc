#include "proto/frame/frame_codec.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "planewise/v1/models.pb.h"
#include "planewise/v1/session.pb.h"

namespace planewise {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

uint32_t BytesTag(int field_number) {
  return WireFormatLite::MakeTag(field_number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

// Walks over slices without joining them.
class SliceCursor {
 public:
  explicit SliceCursor(std::vector<grpc::Slice> slices) : slices_(std::move(slices)) {
    for (const grpc::Slice& slice : slices_) remaining_ += slice.size();
  }

  size_t remaining() const { return remaining_; }

  // Tags and lengths, which protobuf writes in at most five bytes. nullopt for
  // anything longer or cut short.
  std::optional<uint32_t> ReadVarint32() {
    uint64_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      if (remaining_ == 0) return std::nullopt;
      const uint8_t byte = ReadByte();
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) {
        if (value > std::numeric_limits<uint32_t>::max()) return std::nullopt;
        return static_cast<uint32_t>(value);
      }
    }
    return std::nullopt;
  }

  // The next `size` <= remaining() bytes, shared.
  std::vector<grpc::Slice> Take(size_t size) {
    std::vector<grpc::Slice> taken;
    remaining_ -= size;
    while (size > 0) {
      SkipEmpty();
      const grpc::Slice& slice = slices_[index_];
      const size_t part = std::min(size, slice.size() - offset_);
      taken.push_back(slice.sub(offset_, offset_ + part));
      offset_ += part;
      size -= part;
    }
    return taken;
  }

  // The next `size` <= remaining() bytes, copied to the end of `out`.
  void Append(size_t size, std::string& out) {
    for (const grpc::Slice& slice : Take(size)) {
      out.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
  }

  // Copies one varint of up to ten bytes; false if there is none.
  bool AppendVarint(std::string& out) {
    for (int i = 0; i < 10 && remaining_ > 0; ++i) {
      const uint8_t byte = ReadByte();
      out.push_back(static_cast<char>(byte));
      if (byte < 0x80) return true;
    }
    return false;
  }

 private:
  void SkipEmpty() {
    while (offset_ == slices_[index_].size()) {
      ++index_;
      offset_ = 0;
    }
  }

  uint8_t ReadByte() {
    SkipEmpty();
    --remaining_;
    return slices_[index_].begin()[offset_++];
  }

  const std::vector<grpc::Slice> slices_;
  size_t index_ = 0;
  size_t offset_ = 0;  // in slices_[index_]
  size_t remaining_ = 0;
};

void AppendVarint32(uint32_t value, std::string& out) {
  uint8_t bytes[5];
  const uint8_t* end = CodedOutputStream::WriteVarint32ToArray(value, bytes);
  out.append(reinterpret_cast<const char*>(bytes), end - bytes);
}

struct ChunkParts {
  std::string fields;  // the encoded chunk less its data
  std::vector<grpc::Slice> data;
};

// Splits a message whose only field is its chunk. nullopt for any encoding that is
// not plainly that, legal or not: the caller leaves it to protobuf.
std::optional<ChunkParts> SplitLoneChunk(const std::vector<grpc::Slice>& slices, int chunk_field,
                                         int data_field) {
  SliceCursor cursor(slices);
  if (cursor.ReadVarint32() != BytesTag(chunk_field)) return std::nullopt;
  const std::optional<uint32_t> chunk_size = cursor.ReadVarint32();
  if (chunk_size != cursor.remaining()) return std::nullopt;
  ChunkParts parts;
  while (cursor.remaining() > 0) {
    const std::optional<uint32_t> tag = cursor.ReadVarint32();
    if (!tag) return std::nullopt;
    if (*tag == BytesTag(data_field)) {
      const std::optional<uint32_t> size = cursor.ReadVarint32();
      if (!size || *size > cursor.remaining()) return std::nullopt;
      parts.data = cursor.Take(*size);  // The last one counts, as in protobuf.
      continue;
    }
    AppendVarint32(*tag, parts.fields);
    size_t size = 0;
    switch (WireFormatLite::GetTagWireType(*tag)) {
      case WireFormatLite::WIRETYPE_VARINT:
        if (!cursor.AppendVarint(parts.fields)) return std::nullopt;
        continue;
      case WireFormatLite::WIRETYPE_FIXED64:
        size = 8;
        break;
      case WireFormatLite::WIRETYPE_FIXED32:
        size = 4;
        break;
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
        const std::optional<uint32_t> length = cursor.ReadVarint32();
        if (!length) return std::nullopt;
        AppendVarint32(*length, parts.fields);
        size = *length;
        break;
      }
      default:  // Groups, which no message of ours has.
        return std::nullopt;
    }
    if (size > cursor.remaining()) return std::nullopt;
    cursor.Append(size, parts.fields);
  }
  return parts;
}

template <typename Frame>
using ChunkOf = std::decay_t<decltype(std::declval<Frame>().chunk())>;

// A slice that owns `text`.
grpc::Slice SliceOf(std::string text) {
  auto* owner = new std::string(std::move(text));
  return grpc::Slice(
      owner->data(), owner->size(), [](void* string) { delete static_cast<std::string*>(string); },
      owner);
}

absl::Status NotAFrame(const std::string& type, size_t size) {
  return Error(Reason::kProtocolViolation,
               absl::StrCat("frame: its ", size, " bytes are not an encoded ", type,
                            "; send what the .proto files define"));
}

}  // namespace

template <typename Frame>
absl::StatusOr<SplitFrame<Frame>> Split(const grpc::ByteBuffer& bytes) {
  SplitFrame<Frame> split;
  std::vector<grpc::Slice> slices;
  if (bytes.Valid() && !bytes.Dump(&slices).ok()) {
    return NotAFrame(split.header.GetTypeName(), bytes.Length());
  }
  std::optional<ChunkParts> parts =
      SplitLoneChunk(slices, Frame::kChunkFieldNumber, ChunkOf<Frame>::kDataFieldNumber);
  if (parts) {
    if (!split.header.mutable_chunk()->ParseFromString(parts->fields)) {
      return NotAFrame(split.header.GetTypeName(), bytes.Length());
    }
    split.data = std::move(parts->data);
    return split;
  }
  if (bytes.Valid()) {
    grpc::ByteBuffer whole(bytes);  // The reader wants one it may change.
    grpc::ProtoBufferReader reader(&whole);
    if (!split.header.ParseFromZeroCopyStream(&reader)) {
      return NotAFrame(split.header.GetTypeName(), bytes.Length());
    }
  }
  if (split.header.has_chunk() && !split.header.chunk().data().empty()) {
    split.data.push_back(SliceOf(std::move(*split.header.mutable_chunk()->mutable_data())));
    split.header.mutable_chunk()->clear_data();
  }
  return split;
}

template <typename Frame>
grpc::ByteBuffer MakeFrame(const Frame& header, const grpc::Slice& data) {
  if (data.size() == 0) {
    const grpc::Slice slice = SliceOf(header.SerializeAsString());
    return grpc::ByteBuffer(&slice, 1);
  }
  std::string chunk = header.chunk().SerializeAsString();
  AppendVarint32(BytesTag(ChunkOf<Frame>::kDataFieldNumber), chunk);
  AppendVarint32(data.size(), chunk);
  std::string prefix;
  AppendVarint32(BytesTag(Frame::kChunkFieldNumber), prefix);
  AppendVarint32(chunk.size() + data.size(), prefix);
  const grpc::Slice slices[] = {grpc::Slice(prefix + chunk), data};
  return grpc::ByteBuffer(slices, 2);
}

grpc::Slice LendSlice(absl::string_view memory, absl::AnyInvocable<void() &&> returned) {
  using Returned = absl::AnyInvocable<void() &&>;
  return grpc::Slice(
      const_cast<char*>(memory.data()), memory.size(),
      [](void* callback) {
        auto* owned = static_cast<Returned*>(callback);
        std::move (*owned)();
        delete owned;
      },
      new Returned(std::move(returned)));
}

#define PW_INSTANTIATE(Frame)                                                       \
  template absl::StatusOr<SplitFrame<Frame>> Split<Frame>(const grpc::ByteBuffer&); \
  template grpc::ByteBuffer MakeFrame<Frame>(const Frame&, const grpc::Slice&);
PW_INSTANTIATE(v1::ClientFrame)
PW_INSTANTIATE(v1::ServerFrame)
PW_INSTANTIATE(v1::ReadWeightsResponse)
#undef PW_INSTANTIATE

}  // namespace planewise
