#include "core/checkpoint/safetensors_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"

namespace planewise {
namespace {

// Unknown keys of an entry are skipped, like the reference does, but not
// without end.
constexpr int kDepthMax = 8;
// No tensor library goes beyond 64 dimensions.
constexpr size_t kRankMax = 64;
// Of a name that an error shows.
constexpr size_t kShownNameBytesMax = 200;

Error Malformed(absl::string_view path, absl::string_view text) {
  return Error(Reason::kInvalidCheckpoint, absl::StrCat("\"", path, "\": ", text))
      .With("file", path);
}

// Receives the JSON's events and keeps only what a header may hold, so no more
// memory is used than for the entries themselves. The first thing that is not
// allowed ends the parse with a text in error().
class HeaderHandler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `data_bytes`: what follows the header.
  explicit HeaderHandler(int64_t data_bytes) : data_bytes_(data_bytes) {}

  const std::string& error() const { return error_; }
  SafetensorsJson& result() { return result_; }

  bool null() override {
    // The reference takes a null for absent metadata.
    if (place_ == Place::kMetadataValue) {
      place_ = Place::kTop;
      return true;
    }
    return Scalar("null");
  }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t) override { return Scalar("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return Scalar("a number that is not a 64-bit integer");
  }
  bool binary(binary_t&) override { return Fail("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return Scalar("a number");
    std::vector<uint64_t>& numbers = place_ == Place::kShape ? shape_ : offsets_;
    const size_t count_max = place_ == Place::kShape ? kRankMax : 2;
    if (numbers.size() == count_max) {
      return FailEntry(absl::StrCat(place_ == Place::kShape ? "shape" : "data_offsets",
                                    " has more than ", count_max, " numbers"));
    }
    numbers.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    switch (place_) {
      case Place::kDtype:
        dtype_ = ParseDType(value);
        if (!dtype_) {
          return FailEntry(absl::StrCat("dtype \"", ShownTensorName(value), "\" is not known"));
        }
        place_ = Place::kEntry;
        return true;
      case Place::kMetadataText:
        result_.metadata.back().second = std::move(value);
        place_ = Place::kMetadata;
        return true;
      default:
        return Scalar("a string");
    }
  }

  bool start_object(size_t) override {
    switch (place_) {
      case Place::kStart: place_ = Place::kTop; return true;
      case Place::kMetadataValue: place_ = Place::kMetadata; return true;
      case Place::kTensorValue: return StartEntry();
      default: return StartSkipped("an object");
    }
  }

  bool key(string_t& name) override {
    switch (place_) {
      case Place::kTop: return TopKey(name);
      case Place::kMetadata:
        result_.metadata.emplace_back(std::move(name), "");
        place_ = Place::kMetadataText;
        return true;
      case Place::kEntry: return EntryKey(name);
      default: return true;  // Inside a value that is skipped.
    }
  }

  bool end_object() override {
    switch (place_) {
      case Place::kTop: place_ = Place::kEnd; return true;
      case Place::kMetadata: place_ = Place::kTop; return true;
      case Place::kEntry: return EndEntry();
      default: return EndSkipped();
    }
  }

  bool start_array(size_t) override {
    switch (place_) {
      case Place::kShapeValue: place_ = Place::kShape; return true;
      case Place::kOffsetsValue: place_ = Place::kOffsets; return true;
      default: return StartSkipped("an array");
    }
  }

  bool end_array() override {
    if (place_ == Place::kShape || place_ == Place::kOffsets) {
      place_ = Place::kEntry;
      return true;
    }
    return EndSkipped();
  }

  // The exception's text may repeat a token as long as the header.
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(absl::StrCat("the header is not JSON at byte ", position));
  }

 private:
  enum class Place {
    kStart, kTop, kEnd,
    kMetadataValue, kMetadata, kMetadataText,
    kTensorValue, kEntry, kDtype, kShapeValue, kShape, kOffsetsValue, kOffsets,
    kSkipped,
  };

  bool Fail(std::string text) {
    if (error_.empty()) error_ = std::move(text);
    return false;
  }
  bool FailEntry(absl::string_view text) {
    return Fail(absl::StrCat("tensor \"", ShownTensorName(name_), "\": ", text));
  }

  // A value that is not an object or array and that no other rule took.
  bool Scalar(absl::string_view what) {
    switch (place_) {
      case Place::kSkipped:
        if (depth_ == 0) place_ = Place::kEntry;
        return true;
      case Place::kStart: return Fail(absl::StrCat("the header is ", what, ", not an object"));
      case Place::kMetadataValue:
      case Place::kMetadataText:
        return Fail(absl::StrCat("__metadata__ maps strings to strings; it holds ", what));
      default: return FailEntry(absl::StrCat("unexpected ", what));
    }
  }

  bool StartSkipped(absl::string_view what) {
    if (place_ != Place::kSkipped) return Scalar(what);
    if (++depth_ > kDepthMax) {
      return FailEntry(absl::StrCat("nested deeper than ", kDepthMax));
    }
    return true;
  }
  bool EndSkipped() {
    if (--depth_ == 0) place_ = Place::kEntry;
    return true;
  }

  bool TopKey(std::string& name) {
    if (name == kSafetensorsMetadataKey) {
      if (has_metadata_) return Fail("the key \"__metadata__\" occurs twice");
      has_metadata_ = true;
      place_ = Place::kMetadataValue;
      return true;
    }
    if (static_cast<int64_t>(result_.tensors.size()) == kSafetensorsTensorsMax) {
      return Fail(absl::StrCat("more than ", kSafetensorsTensorsMax, " tensors"));
    }
    name_ = std::move(name);
    place_ = Place::kTensorValue;
    return true;
  }

  bool StartEntry() {
    dtype_.reset();
    has_dtype_ = has_shape_ = has_offsets_ = false;
    shape_.clear();
    offsets_.clear();
    place_ = Place::kEntry;
    return true;
  }

  bool EntryKey(const std::string& key) {
    bool* seen = nullptr;
    if (key == "dtype") {
      seen = &has_dtype_;
      place_ = Place::kDtype;
    } else if (key == "shape") {
      seen = &has_shape_;
      place_ = Place::kShapeValue;
    } else if (key == "data_offsets") {
      seen = &has_offsets_;
      place_ = Place::kOffsetsValue;
    } else {
      place_ = Place::kSkipped;
      depth_ = 0;
      return true;
    }
    if (*seen) return FailEntry(absl::StrCat("the key \"", key, "\" occurs twice"));
    *seen = true;
    return true;
  }

  bool EndEntry() {
    if (!has_dtype_ || !has_shape_ || !has_offsets_) {
      return FailEntry("dtype, shape and data_offsets are required");
    }
    if (offsets_.size() != 2) return FailEntry("data_offsets must hold two numbers");
    const uint64_t begin = offsets_[0];
    const uint64_t end = offsets_[1];
    if (begin > end || end > static_cast<uint64_t>(data_bytes_)) {
      return FailEntry(absl::StrCat("data_offsets [", begin, ", ", end,
                                    "] do not lie in the file's ", data_bytes_,
                                    " bytes of tensor data: it is truncated, or its header is "
                                    "damaged; copy it again"));
    }
    // Tensors tile the data, so more than all of it means that some overlap:
    // known here before a hostile header costs memory for each of them.
    claimed_bytes_ += static_cast<int64_t>(end - begin);
    if (claimed_bytes_ > data_bytes_) {
      return FailEntry(absl::StrCat("with it tensors claim ", claimed_bytes_, " bytes, but only ",
                                    data_bytes_, " follow the header: some overlap"));
    }
    SafetensorsEntry entry;
    entry.dtype = *dtype_;
    entry.offset = static_cast<int64_t>(begin);
    entry.length = static_cast<int64_t>(end - begin);
    entry.shape.reserve(shape_.size());
    for (const uint64_t dimension : shape_) {
      if (dimension > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return FailEntry(absl::StrCat("dimension ", dimension, " exceeds 2^63 - 1"));
      }
      entry.shape.push_back(static_cast<int64_t>(dimension));
    }
    entry.name = std::move(name_);
    result_.tensors.push_back(std::move(entry));
    place_ = Place::kTop;
    return true;
  }

  const int64_t data_bytes_;
  std::string error_;
  Place place_ = Place::kStart;
  int depth_ = 0;  // Open objects and arrays of a skipped value.
  bool has_metadata_ = false;
  int64_t claimed_bytes_ = 0;
  SafetensorsJson result_;
  // The entry at work.
  std::string name_;
  std::optional<DType> dtype_;
  bool has_dtype_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  std::vector<uint64_t> shape_;
  std::vector<uint64_t> offsets_;
};

// nlohmann's lexer takes a NUL for the end and skips a byte-order mark; the
// reference refuses both.
absl::Status CheckText(absl::string_view path, absl::string_view json) {
  const size_t nul = json.find('\0');
  if (nul != absl::string_view::npos) {
    return Malformed(path, absl::StrCat("the header has a NUL at byte ", nul,
                                        "; only JSON and white space are allowed"));
  }
  const size_t first = json.find_first_not_of(" \t\r\n");
  if (first == absl::string_view::npos || json[first] != '{') {
    return Malformed(path, "the header does not begin with '{'");
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShownTensorName(absl::string_view name) {
  const bool whole = name.size() <= kShownNameBytesMax;
  return absl::StrCat(absl::CHexEscape(name.substr(0, kShownNameBytesMax)), whole ? "" : "...");
}

absl::StatusOr<SafetensorsJson> ParseSafetensorsJson(absl::string_view path, int64_t data_bytes,
                                                     absl::string_view json) {
  PW_RETURN_IF_ERROR(CheckText(path, json));
  HeaderHandler handler(data_bytes);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &handler)) {
    return Malformed(path, handler.error());
  }
  return std::move(handler.result());
}

}  // namespace planewise
