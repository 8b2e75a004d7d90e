#ifndef PLANEWISE_CORE_CHECKPOINT_BYTE_CODEC_H_
#define PLANEWISE_CORE_CHECKPOINT_BYTE_CODEC_H_
// Numbers and strings as bytes: little-endian, strings after a 32-bit length.
// Every value has one encoding.
//
// Not here: what the values are (manifest_codec.h, record_file.h).

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace planewise {

class ByteWriter {
 public:
  void U8(uint8_t value) { Number(value, 1); }
  void U32(uint32_t value) { Number(value, 4); }
  void U64(uint64_t value) { Number(value, 8); }
  void Bytes(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  void String(absl::string_view text) {
    U32(static_cast<uint32_t>(text.size()));
    Bytes(text);
  }
  std::string Take() { return std::move(bytes_); }
  const std::string& bytes() const { return bytes_; }

 private:
  void Number(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }

  std::string bytes_;
};

// Reads what ByteWriter wrote. Past the end every value is 0 or empty and ok()
// is false for good, so callers check once.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  uint8_t U8() { return static_cast<uint8_t>(Number(1)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  absl::string_view Bytes(size_t size) {
    if (size > left()) {
      ok_ = false;
      return {};
    }
    position_ += size;
    return bytes_.substr(position_ - size, size);
  }
  std::string String() { return std::string(Bytes(U32())); }

  // A count of items of at least `item_bytes` each: one that the bytes left
  // cannot hold is a failure, before anything is allocated for it.
  uint32_t Count(size_t item_bytes) {
    const uint32_t count = U32();
    if (count > left() / item_bytes) {
      ok_ = false;
      return 0;
    }
    return count;
  }

  void Fail() { ok_ = false; }
  bool ok() const { return ok_; }
  size_t left() const { return ok_ ? bytes_.size() - position_ : 0; }
  // Where the next value begins; after a failure, where it was met.
  size_t position() const { return position_; }

 private:
  uint64_t Number(size_t size) {
    uint64_t value = 0;
    int shift = 0;
    for (const char byte : Bytes(size)) {
      value |= uint64_t{static_cast<uint8_t>(byte)} << shift;
      shift += 8;
    }
    return value;
  }

  const absl::string_view bytes_;
  size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace planewise

#endif  // PLANEWISE_CORE_CHECKPOINT_BYTE_CODEC_H_
