// A store whose files are not what was written: each kind of damage is found,
// named with file and offset, and stays with its model.

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/memory_file_system.h"
#include "core/checkpoint/format_constants.h"
#include "core/checkpoint/manifest_codec.h"
#include "core/checkpoint/model_store.h"
#include "core/checkpoint/store_pointer.h"
#include "core/checkpoint/store_test_model.h"
#include "core/checkpoint/streaming_checksum.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSegment[] = "/s/models/a/segments/00000000000000000001-0000.safetensors";
constexpr char kManifest[] = "/s/models/a/manifests/00000000000000000001.manifest";
constexpr char kCurrent[] = "/s/models/a/CURRENT";

class ModelStoreDamageTest : public testing::Test {
 protected:
  // Models a (version 1) and b (version 2), closed.
  ModelStoreDamageTest() {
    const std::unique_ptr<ModelStore> store = Open();
    PW_EXPECT_OK(store->Save(Model("a", 1), {}, {}));
    PW_EXPECT_OK(store->Save(Model("b", 2), {}, {}));
    manifest_ = store->ManifestOf("a").value();
  }

  ModelVersion Model(const std::string& name, uint64_t version) {
    return MakeTestModel(name, WeightVersion(version), version, *budget_);
  }
  std::unique_ptr<ModelStore> Open() {
    absl::StatusOr<std::unique_ptr<ModelStore>> store =
        ModelStore::Open(fs_, "/s", StoreAccess::kReadWrite);
    PW_EXPECT_OK(store);
    return store.ok() ? *std::move(store) : nullptr;
  }
  void Flip(const std::string& path, int64_t offset) {
    std::string bytes = fs_.Contents(path);
    bytes[static_cast<size_t>(offset)] ^= 0x10;
    fs_.SetContents(path, bytes);
  }
  StoredPart PartOf(const std::string& name) {
    for (const StoredPartView& part : manifest_.Parts()) {
      if (part.name() == name) return *part.stored;
    }
    ADD_FAILURE() << name;
    return {};
  }
  // Puts `manifest` in the place of a's, with a CURRENT that names it.
  void ReplaceManifest(const Manifest& manifest) {
    const std::string bytes = EncodeManifest(manifest);
    fs_.SetContents(kManifest, bytes);
    fs_.SetContents(kCurrent,
                    EncodeCurrent({manifest_.version, static_cast<int64_t>(bytes.size()),
                                   ChecksumOf(BytesOf(bytes))}));
  }

  // a is damaged with `file` and `offset`, whoever asks; b is whole; a can be
  // deleted and made anew.
  void ExpectDamage(const std::string& file, int64_t offset) {
    const std::unique_ptr<ModelStore> store = Open();
    ASSERT_NE(store, nullptr);
    const absl::Status load = store->Load("a", *budget_, {}).status();
    EXPECT_EQ(load.code(), absl::StatusCode::kDataLoss) << load;
    const ErrorDetails details = DetailsOf(load).value_or(ErrorDetails());
    ASSERT_NE(details.Find("file"), nullptr) << load;
    EXPECT_EQ(*details.Find("file"), file) << load;
    ASSERT_NE(details.Find("byteOffset"), nullptr) << load;
    EXPECT_EQ(*details.Find("byteOffset"), std::to_string(offset)) << load;

    const std::vector<StoredModel> models = store->List();
    ASSERT_EQ(models.size(), 2u);
    EXPECT_EQ(models[0].damage.code(), absl::StatusCode::kDataLoss);
    PW_EXPECT_OK(models[1].damage);
    EXPECT_EQ(store->Save(Model("a", 3), {}, {}).status().code(), absl::StatusCode::kDataLoss);
    PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, store->Verify("a", *budget_, {}));
    ASSERT_FALSE(report.findings.empty());
    EXPECT_EQ(report.findings[0].file, file);
    EXPECT_EQ(report.findings[0].byte_offset, offset);
    EXPECT_EQ(store->List()[0].damage.code(), absl::StatusCode::kDataLoss);

    PW_ASSERT_OK_AND_ASSIGN(const ModelVersion b, store->Load("b", *budget_, {}));
    EXPECT_EQ(ContentOf(b), ContentOf(Model("b", 2)));
    PW_EXPECT_OK(store->Delete("a"));
    PW_EXPECT_OK(store->Save(Model("a", 4), {}, {}));
    PW_EXPECT_OK(store->Load("a", *budget_, {}));
  }

  MemoryFileSystem fs_;
  std::shared_ptr<MemoryBudget> budget_ = MemoryBudget::Create(int64_t{1} << 30);
  Manifest manifest_;
};

TEST_F(ModelStoreDamageTest, AByteOfAPayload) {
  const StoredPart part = PartOf("layers.0.up.weight#row.payload");
  Flip(kSegment, part.offset + part.length / 2);
  ExpectDamage(kSegment, part.offset);
}

TEST_F(ModelStoreDamageTest, TheFirstAndLastByteOfEveryPart) {
  for (const StoredPartView& view : manifest_.Parts()) {
    const StoredPart& part = *view.stored;
    if (part.length == 0) continue;
    for (const int64_t offset : {part.offset, part.offset + part.length - 1}) {
      SCOPED_TRACE(view.name());
      Flip(kSegment, offset);
      const absl::Status load = Open()->Load("a", *budget_, {}).status();
      EXPECT_THAT(load, HasReason(Reason::kChecksumMismatch, HasSubstr(view.name())));
      EXPECT_EQ(*DetailsOf(load)->Find("byteOffset"), std::to_string(part.offset));
      Flip(kSegment, offset);
    }
  }
  PW_EXPECT_OK(Open()->Load("a", *budget_, {}));
}

TEST_F(ModelStoreDamageTest, AnyByteOfASegmentsHeader) {
  const int64_t header_bytes = manifest_.segments[0].header_bytes;
  for (int64_t offset = 0; offset < header_bytes; ++offset) {
    Flip(kSegment, offset);
    const absl::Status load = Open()->Load("a", *budget_, {}).status();
    ASSERT_THAT(load, HasReason(Reason::kChecksumMismatch, HasSubstr(kSegment))) << offset;
    Flip(kSegment, offset);
  }
  Flip(kSegment, 8);
  ExpectDamage(kSegment, 0);
}

TEST_F(ModelStoreDamageTest, ATruncatedSegment) {
  const std::string bytes = fs_.Contents(kSegment);
  fs_.SetContents(kSegment, bytes.substr(0, bytes.size() - 1));
  ExpectDamage(kSegment, static_cast<int64_t>(bytes.size()) - 1);
}

TEST_F(ModelStoreDamageTest, ASegmentThatGrew) {
  const std::string bytes = fs_.Contents(kSegment);
  fs_.SetContents(kSegment, bytes + "x");
  ExpectDamage(kSegment, static_cast<int64_t>(bytes.size()));
}

TEST_F(ModelStoreDamageTest, AMissingSegment) {
  PW_ASSERT_OK(fs_.Remove(kSegment));
  ExpectDamage(kSegment, 0);
}

TEST_F(ModelStoreDamageTest, AMissingManifest) {
  PW_ASSERT_OK(fs_.Remove(kManifest));
  ExpectDamage(kManifest, 0);
}

TEST_F(ModelStoreDamageTest, AnyByteOfAManifest) {
  const std::string whole = fs_.Contents(kManifest);
  for (size_t offset = 0; offset < whole.size(); ++offset) {
    Flip(kManifest, static_cast<int64_t>(offset));
    const std::unique_ptr<ModelStore> store = Open();
    const absl::Status damage = store->List()[0].damage;
    ASSERT_EQ(damage.code(), absl::StatusCode::kDataLoss) << offset << " " << damage;
    ASSERT_EQ(*DetailsOf(damage)->Find("file"), kManifest) << offset;
    fs_.SetContents(kManifest, whole);
  }
}

TEST_F(ModelStoreDamageTest, AnyByteOfCurrent) {
  const std::string whole = fs_.Contents(kCurrent);
  for (size_t offset = 0; offset < whole.size(); ++offset) {
    Flip(kCurrent, static_cast<int64_t>(offset));
    const absl::Status damage = Open()->List()[0].damage;
    ASSERT_EQ(damage.code(), absl::StatusCode::kDataLoss) << offset << " " << damage;
    ASSERT_EQ(*DetailsOf(damage)->Find("file"), kCurrent) << offset;
    fs_.SetContents(kCurrent, whole);
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    fs_.SetContents(kCurrent, whole.substr(0, size));
    ASSERT_EQ(Open()->List()[0].damage.code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(ModelStoreDamageTest, AnotherModelsManifest) {
  const std::string bytes = fs_.Contents("/s/models/b/manifests/00000000000000000002.manifest");
  fs_.SetContents(kManifest, bytes);
  ExpectDamage(kManifest, 0);
}

// Absence proves nothing: a store must not remove data because a file is gone.
TEST_F(ModelStoreDamageTest, AMissingCurrentIsDamageAndNothingIsSwept) {
  PW_ASSERT_OK(fs_.Remove(kCurrent));
  const std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(store->open_report(), ElementsAre(HasSubstr("files of versions up to 1")));
  EXPECT_THAT(fs_.Exists(kSegment), IsOkAndHolds(true));
  EXPECT_THAT(fs_.Exists(kManifest), IsOkAndHolds(true));
  EXPECT_THAT(store->Load("a", *budget_, {}),
              HasReason(Reason::kCorruptFile, HasSubstr("CURRENT")));
}

TEST_F(ModelStoreDamageTest, DamagedModelsAreNotSwept) {
  PW_ASSERT_OK(fs_.Create("/s/models/a/segments/00000000000000000009-0000.safetensors"));
  Flip(kManifest, 30);
  Open();
  EXPECT_THAT(fs_.Exists("/s/models/a/segments/00000000000000000009-0000.safetensors"),
              IsOkAndHolds(true));
}

// A loader that ignored missing scales once answered garbage.
TEST_F(ModelStoreDamageTest, AManifestWithoutAPlanesScales) {
  Manifest manifest = manifest_;
  manifest.layers[0].weight.planes[0].scales.reset();
  ReplaceManifest(manifest);
  const std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(store->Load("a", *budget_, {}),
              HasReason(Reason::kCorruptFile,
                        AllOf(HasSubstr("layers.0.q.weight"), HasSubstr("lacks its scales"))));
}

TEST_F(ModelStoreDamageTest, ASegmentWithoutAPlanesScales) {
  std::string bytes = fs_.Contents(kSegment);
  const std::string name = "layers.0.q.weight#row.scales";
  bytes.replace(bytes.find(name), name.size(), std::string(name.size(), 'x'));
  fs_.SetContents(kSegment, bytes);
  ExpectDamage(kSegment, 0);
}

TEST_F(ModelStoreDamageTest, ASegmentsOwnHeaderMustAgreeWithTheManifest) {
  std::string bytes = fs_.Contents(kSegment);
  const std::string name = "layers.0.q.weight#row.scales";
  bytes.replace(bytes.find(name), name.size(), std::string(name.size(), 'x'));
  fs_.SetContents(kSegment, bytes);
  Manifest manifest = manifest_;
  const size_t header_bytes = static_cast<size_t>(manifest.segments[0].header_bytes);
  manifest.segments[0].header_checksum = ChecksumOf(BytesOf(bytes).subspan(0, header_bytes));
  ReplaceManifest(manifest);
  PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, Open()->Verify("a", *budget_, {}));
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].object, name);
  EXPECT_THAT(report.findings[0].text, HasSubstr("does not place it where the manifest does"));
}

TEST_F(ModelStoreDamageTest, ANewerFormatVersionIsRefusedAndNotCalledDamage) {
  std::string bytes = fs_.Contents(kCurrent);
  bytes[8] = 2;  // The version field.
  const uint64_t checksum = ChecksumOf(BytesOf(bytes).subspan(0, bytes.size() - 8));
  for (int i = 0; i < 8; ++i) bytes[bytes.size() - 8 + i] = static_cast<char>(checksum >> (8 * i));
  fs_.SetContents(kCurrent, bytes);
  EXPECT_THAT(ModelStore::Open(fs_, "/s", StoreAccess::kReadWrite),
              HasReason(Reason::kNotSupported,
                        AllOf(HasSubstr("store format version 2"), HasSubstr("newer build"))));
  EXPECT_THAT(fs_.Exists(kSegment), IsOkAndHolds(true));
}

TEST_F(ModelStoreDamageTest, VerificationFindsEveryDamagedPartAndClearsWhatWasRepaired) {
  const StoredPart payload = PartOf("layers.0.up.weight#row.payload");
  const StoredPart bias = PartOf("layers.0.q.bias#high_precision.payload");
  Flip(kSegment, payload.offset);
  Flip(kSegment, bias.offset);
  const std::unique_ptr<ModelStore> store = Open();
  PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, store->Verify("a", *budget_, {}));
  ASSERT_EQ(report.findings.size(), 2u);
  EXPECT_EQ(report.findings[0].object, "layers.0.q.bias#high_precision.payload");
  EXPECT_EQ(report.findings[0].byte_offset, bias.offset);
  EXPECT_EQ(report.findings[1].object, "layers.0.up.weight#row.payload");
  EXPECT_EQ(report.tensor_count, 10);
  EXPECT_EQ(report.checked_bytes,
            manifest_.stored_bytes() + manifest_.segments[0].header_bytes);
  EXPECT_THAT(store->Load("a", *budget_, {}), HasReason(Reason::kChecksumMismatch));

  Flip(kSegment, payload.offset);
  Flip(kSegment, bias.offset);
  PW_ASSERT_OK_AND_ASSIGN(const VerifyReport repaired, store->Verify("a", *budget_, {}));
  EXPECT_THAT(repaired.findings, IsEmpty());
  PW_EXPECT_OK(store->Load("a", *budget_, {}));
}

// A change of a plane's bytes before they are saved, so that checksums match.
struct PlaneFaultCase {
  const char* name;
  bool scales;
  int64_t offset;
  int value;
  std::vector<std::string> texts;
};

TEST_F(ModelStoreDamageTest, VerificationLooksIntoPlanesWhoseChecksumsMatch) {
  // layers.0.up.weight [160, 96]: scales [160 of 256, 3 of 4].
  const PlaneFaultCase kCases[] = {
      {"a scale that is no number", true, 4, 255, {"1 scales are 255", "exponents"}},
      {"padding at the end of a row", true, 3, 1, {"1 scales of padding are not 0"}},
      {"padding rows", true, 160 * 4, 1, {"1 scales of padding are not 0"}},
  };
  for (const PlaneFaultCase& test : kCases) {
    SCOPED_TRACE(test.name);
    ModelVersion model = Model("c", 10);
    const HostBuffer& buffer = model.layers[1].weight->row->scales;
    const_cast<std::byte*>(buffer.data())[test.offset] = static_cast<std::byte>(test.value);
    const std::unique_ptr<ModelStore> store = Open();
    PW_ASSERT_OK(store->Save(model, {}, {}));
    PW_ASSERT_OK_AND_ASSIGN(const Manifest manifest, store->ManifestOf("c"));
    const StoredPart& scales = *manifest.layers[1].weight.planes[0].scales;
    PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, store->Verify("c", *budget_, {}));
    ASSERT_EQ(report.findings.size(), test.texts.size());
    EXPECT_EQ(report.findings[0].object, "layers.0.up.weight#row.scales");
    EXPECT_EQ(report.findings[0].byte_offset, scales.offset + test.offset);
    PW_EXPECT_OK(report.damage);  // The bytes are those that were written.
    PW_EXPECT_OK(store->Load("c", *budget_, {}));
    for (size_t i = 0; i < test.texts.size(); ++i) {
      EXPECT_THAT(report.findings[i].text, HasSubstr(test.texts[i]));
    }
    PW_ASSERT_OK(store->Delete("c"));
  }
}

TEST_F(ModelStoreDamageTest, VerificationComparesRecordedExponents) {
  Manifest manifest = manifest_;
  std::optional<ExponentRange>& exponents = manifest.layers[1].weight.planes[0].exponents;
  ASSERT_TRUE(exponents.has_value());
  exponents->min -= 1;
  ReplaceManifest(manifest);
  PW_ASSERT_OK_AND_ASSIGN(const VerifyReport report, Open()->Verify("a", *budget_, {}));
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_THAT(report.findings[0].text, HasSubstr("exponents over non-zero blocks are"));
}

// --- What an interrupted save leaves.

TEST_F(ModelStoreDamageTest, AWholeNewerManifestIsReportedAndSwept) {
  Manifest newer = manifest_;
  newer.version = WeightVersion(5);
  for (const auto& [path, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"/s/models/a/manifests/00000000000000000005.manifest", EncodeManifest(newer)},
           {"/s/models/a/segments/00000000000000000005-0000.safetensors", "x"},
           {"/s/models/a/segments/00000000000000000005-0001.safetensors.tmp", "x"},
           {"/s/models/a/CURRENT.tmp", "x"}}) {
    PW_ASSERT_OK(fs_.Create(path));
    fs_.SetContents(path, bytes);
  }
  const std::unique_ptr<ModelStore> store = Open();
  EXPECT_THAT(store->open_report(),
              ElementsAre(HasSubstr("version 5 was begun but never acknowledged; version 1 stands"),
                          HasSubstr("CURRENT.tmp"), HasSubstr("5.manifest"),
                          HasSubstr("5-0000.safetensors"), HasSubstr("5-0001.safetensors.tmp")));
  EXPECT_THAT(fs_.List("/s/models/a"),
              IsOkAndHolds(ElementsAre("CURRENT", "manifests", "segments")));
  EXPECT_THAT(fs_.List("/s/models/a/segments"),
              IsOkAndHolds(ElementsAre("00000000000000000001-0000.safetensors")));
  PW_EXPECT_OK(store->Load("a", *budget_, {}));
  // Its number was seen by somebody.
  EXPECT_THAT(store->ReserveVersions(1), IsOkAndHolds(WeightVersion(6)));
}

}  // namespace
}  // namespace planewise
