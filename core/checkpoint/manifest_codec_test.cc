#include "core/checkpoint/manifest_codec.h"

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file_system.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/record_file.h"
#include "core/checkpoint/streaming_checksum.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Version 7 of a model of two layers in two segments, one of version 5.
Manifest SoundManifest() {
  Manifest manifest;
  manifest.model = "m";
  manifest.version = WeightVersion(7);
  manifest.recipe = DefaultRecipe(Format::kMxfp8);
  manifest.recipe.backward_override = BackwardOverride::kDequantized;
  manifest.trainable = true;
  manifest.source_path = "/models/m";
  manifest.request_ids = {"r1", "r2"};
  manifest.segments = {{"00000000000000000007-0000.safetensors", 100'000, 500, 11},
                       {"00000000000000000005-0003.safetensors", 50'000, 80, 12}};
  StoredLayer q;
  q.name = "q";
  q.weight = {"q.weight",       {96, 64}, DType::kBF16, Format::kMxfp8, BlockGeometry::k1D,
              WeightVersion(7), {}};
  q.weight.planes = {{PlaneKind::kRow,
                      WeightVersion(7),
                      StoredPart{0, 500, 6144, 1},
                      StoredPart{0, 7000, 512, 2},
                      ExponentRange{100, 130},
                      {}},
                     {PlaneKind::kColumn,
                      WeightVersion(7),
                      StoredPart{0, 10'000, 6144, 3},
                      StoredPart{0, 20'000, 512, 4},
                      {},
                      {}}};
  q.bias = StoredWeight{
      "q.bias",
      {1, 96},
      DType::kF32,
      Format::kNone,
      BlockGeometry::k1D,
      WeightVersion(5),
      {{PlaneKind::kHighPrecision, WeightVersion(5), StoredPart{1, 80, 384, 5}, {}, {}, {}}}};
  q.decision = {PlanePolicy::kAuto, true, true, "why", 5, {"nothing"}};
  q.provenance = "quantized";
  StoredLayer pooler;
  pooler.name = "pooler";
  pooler.weight = {
      "pooler.weight",
      {3, 5},
      DType::kF16,
      Format::kNone,
      BlockGeometry::k1D,
      WeightVersion(5),
      {{PlaneKind::kHighPrecision, WeightVersion(5), StoredPart{1, 464, 30, 6}, {}, {}, {}}}};
  manifest.layers = {q, pooler};
  manifest.local = {{"embeddings", {10, 4}, "stays"}, {"scalar", {}, "stays"}};
  return manifest;
}

TEST(ManifestCodecTest, WhatIsEncodedDecodes) {
  const Manifest manifest = SoundManifest();
  EXPECT_THAT(DecodeManifest("f", EncodeManifest(manifest)), IsOkAndHolds(manifest));
}

// The bytes are a promise: a change here is a new format version.
TEST(ManifestCodecTest, BytesAreThoseOfTheFormat) {
  Manifest manifest;
  manifest.model = "m";
  manifest.version = WeightVersion(258);
  manifest.source_path = "s";
  const std::string body = std::string(
                               "\1\0\0\0m"
                               "\2\1\0\0\0\0\0\0",
                               13) +
                           std::string(
                               "\4\0\0\0none"
                               "\4\0\0\0none"
                               "\4\0\0\0e4m3"
                               "\2\0\0\0001d",
                               30) +
                           std::string(
                               "\4\0\0\0AUTO"
                               "\1"
                               "\0"
                               "\1\0\0\0s",
                               15) +
                           std::string(
                               "\0\0\0\0"
                               "\0\0\0\0"
                               "\0\0\0\0"
                               "\0\0\0\0",
                               16);
  ASSERT_EQ(body.size(), 74u);
  std::string file = std::string(
                         "PWMANIF1"
                         "\1\0\0\0"
                         "\0\0\0\0"
                         "\x4a\0\0\0\0\0\0\0",
                         24) +
                     body;
  const uint64_t checksum = ChecksumOf(BytesOf(file));
  for (int i = 0; i < 8; ++i) file.push_back(static_cast<char>(checksum >> (8 * i)));
  EXPECT_EQ(EncodeManifest(manifest), file);
}

TEST(ManifestCodecTest, EveryCutIsRefused) {
  const std::string whole = EncodeManifest(SoundManifest());
  for (size_t size = 0; size < whole.size(); ++size) {
    const absl::Status status = DecodeManifest("f", whole.substr(0, size)).status();
    ASSERT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    ASSERT_NE(DetailsOf(status)->Find("byteOffset"), nullptr) << size;
  }
}

// Bodies whose checksum is right and whose content no build writes.
TEST(ManifestCodecTest, EveryCutAndGrowthOfTheBodyIsRefused) {
  const std::string whole = EncodeManifest(SoundManifest());
  const std::string body = whole.substr(24, whole.size() - 32);
  ASSERT_EQ(EncodeRecord(kManifestMagic, body), whole);
  for (size_t size = 0; size < body.size(); ++size) {
    ASSERT_THAT(DecodeManifest("f", EncodeRecord(kManifestMagic, body.substr(0, size))),
                HasReason(Reason::kCorruptFile))
        << size;
  }
  EXPECT_THAT(DecodeManifest("f", EncodeRecord(kManifestMagic, body + '\0')),
              HasReason(Reason::kCorruptFile, HasSubstr("no build writes such a body")));
}

TEST(ManifestCodecTest, AHugeCountAllocatesNothing) {
  std::string body = EncodeManifest(SoundManifest());
  body = body.substr(24, body.size() - 32);
  const size_t count = body.find("\2\0\0\0\2\0\0\0r1");
  ASSERT_NE(count, std::string::npos);
  body.replace(count, 4, "\xff\xff\xff\xff");
  EXPECT_THAT(DecodeManifest("f", EncodeRecord(kManifestMagic, body)),
              HasReason(Reason::kCorruptFile));
}

TEST(ManifestCodecTest, UnknownNamesAreRefused) {
  std::string body = EncodeManifest(SoundManifest());
  body = body.substr(24, body.size() - 32);
  for (const std::string name : {"mxfp8", "dequantized", "AUTO", "linear", "BF16", "row"}) {
    std::string changed = body;
    changed[changed.find(name)] ^= 1;
    EXPECT_THAT(DecodeManifest("f", EncodeRecord(kManifestMagic, changed)),
                HasReason(Reason::kCorruptFile))
        << name;
  }
}

struct Broken {
  int invariant;
  const char* name;
  std::function<void(Manifest&)> change;
  const char* text;
};

const Broken kBroken[] = {
    {1, "illegal model name", [](Manifest& m) { m.model = "a/b"; }, "A-Z"},
    {1, "version 0", [](Manifest& m) { m.version = WeightVersion(); }, "version is 0"},
    {1, "illegal recipe", [](Manifest& m) { m.recipe.format = Format::kNone; }, ""},
    {2, "segment outside", [](Manifest& m) { m.segments[0].file = "../x.safetensors"; }, "../x"},
    {2, "segment twice", [](Manifest& m) { m.segments[1].file = m.segments[0].file; }, "0007-0000"},
    {2, "segment of a later version",
     [](Manifest& m) { m.segments[0].file = "00000000000000000008-0000.safetensors"; }, "0008"},
    {3, "layer twice", [](Manifest& m) { m.layers[1].name = "q"; }, "\"q\" occurs twice"},
    {3, "weight twice", [](Manifest& m) { m.layers[1].weight.name = "q.bias"; }, "pooler"},
    {4, "no plane", [](Manifest& m) { m.layers[0].weight.planes.clear(); }, "q.weight"},
    {4, "no row plane",
     [](Manifest& m) { m.layers[0].weight.planes.erase(m.layers[0].weight.planes.begin()); },
     "q.weight"},
    {4, "planes out of order",
     [](Manifest& m) { std::swap(m.layers[0].weight.planes[0], m.layers[0].weight.planes[1]); },
     "order"},
    {4, "plane twice", [](Manifest& m) { m.layers[0].weight.planes[1].kind = PlaneKind::kRow; },
     "order"},
    {4, "quantized weight with a plain plane",
     [](Manifest& m) { m.layers[0].weight.planes[1].kind = PlaneKind::kHighPrecision; },
     "wrong planes"},
    {4, "plain weight with a row plane",
     [](Manifest& m) { m.layers[1].weight.planes[0].kind = PlaneKind::kRow; }, "wrong planes"},
    {4, "quantized bias", [](Manifest& m) { m.layers[0].bias->format = Format::kMxfp8; }, "bias"},
    {5, "stale plane", [](Manifest& m) { m.layers[0].weight.planes[1].epoch = WeightVersion(6); },
     "epoch 6"},
    {5, "epoch 0",
     [](Manifest& m) {
       m.layers[1].weight.epoch = m.layers[1].weight.planes[0].epoch = WeightVersion();
     },
     "epoch 0"},
    {5, "epoch from the future",
     [](Manifest& m) {
       m.layers[1].weight.epoch = m.layers[1].weight.planes[0].epoch = WeightVersion(8);
     },
     "epoch 8"},
    {6, "short payload", [](Manifest& m) { m.layers[0].weight.planes[0].payload->length -= 1; },
     "6143 bytes of payload; its shape requires 6144"},
    {6, "long scales", [](Manifest& m) { m.layers[0].weight.planes[0].scales->length += 1; },
     "513 bytes of scales; its shape requires 512"},
    {6, "missing scales", [](Manifest& m) { m.layers[0].weight.planes[1].scales.reset(); },
     "lacks its scales"},
    {6, "scales of a plain plane",
     [](Manifest& m) {
       m.layers[1].weight.planes[0].scales = StoredPart{1, 600, 0, 0};
     },
     "has scales"},
    {6, "shape beyond all bytes",
     [](Manifest& m) {
       m.layers[0].weight.shape = {INT64_MAX, INT64_MAX};
     },
     "q.weight"},
    {7, "no such segment", [](Manifest& m) { m.layers[0].weight.planes[0].payload->segment = 2; },
     "segment 2 of 2"},
    {7, "inside the header",
     [](Manifest& m) { m.layers[0].weight.planes[0].payload->offset = 499; }, "from 499"},
    {7, "past the end",
     [](Manifest& m) { m.layers[0].weight.planes[0].payload->offset = 100'000 - 6143; }, "100000"},
    {7, "offset near 2^63",
     [](Manifest& m) { m.layers[0].weight.planes[0].payload->offset = INT64_MAX; }, "q.weight"},
    {7, "overlap", [](Manifest& m) { m.layers[0].weight.planes[0].scales->offset = 6643; },
     "\"q.weight#row.payload\" and \"q.weight#row.scales\" overlap"},
    {7, "header longer than its file", [](Manifest& m) { m.segments[0].header_bytes = 100'001; },
     "100001 of 100000"},
    {8, "decision without the column", [](Manifest& m) { m.layers[0].decision.column = false; },
     "layer \"q\""},
    {8, "decision without the row", [](Manifest& m) { m.layers[0].decision.row = false; },
     "layer \"q\""},
    {9, "exponent of NaN", [](Manifest& m) { m.layers[0].weight.planes[0].exponents->max = 255; },
     "100 to 255"},
    {9, "exponents reversed",
     [](Manifest& m) { m.layers[0].weight.planes[0].exponents->min = 131; }, "131 to 130"},
    {9, "exponents of a plain plane",
     [](Manifest& m) {
       m.layers[1].weight.planes[0].exponents = ExponentRange{1, 2};
     },
     "1 to 2"},
};

TEST(ManifestTest, EveryInvariantIsChecked) {
  PW_ASSERT_OK(SoundManifest().CheckInvariants());
  for (const Broken& test : kBroken) {
    SCOPED_TRACE(test.name);
    Manifest manifest = SoundManifest();
    test.change(manifest);
    const absl::Status status = manifest.CheckInvariants();
    EXPECT_THAT(status, HasReason(Reason::kCorruptFile, HasSubstr(test.text)));
    EXPECT_EQ(*DetailsOf(status)->Find("invariant"), std::to_string(test.invariant));
    EXPECT_THAT(DecodeManifest("f", EncodeManifest(manifest)),
                HasReason(Reason::kCorruptFile, AllOf(HasSubstr("\"f\""), HasSubstr(test.text))));
  }
}

TEST(ManifestTest, PartsComeInOrderWithTheirNames) {
  const Manifest manifest = SoundManifest();
  std::vector<std::string> names;
  for (const StoredPartView& part : manifest.Parts()) names.push_back(part.name());
  EXPECT_THAT(names, testing::ElementsAre("q.weight#row.payload", "q.weight#row.scales",
                                          "q.weight#column.payload", "q.weight#column.scales",
                                          "q.bias#high_precision.payload",
                                          "pooler.weight#high_precision.payload"));
  EXPECT_EQ(manifest.stored_bytes(), 6144 + 512 + 6144 + 512 + 384 + 30);
}

}  // namespace
}  // namespace planewise
