#include "core/checkpoint/store_names.h"

#include <string>

#include "core/base/error.h"
#include "gmock/gmock.h"
#include "tests/testing/status_matchers.h"

namespace planewise {
namespace {

TEST(StoreNamesTest, FileNamesSortByVersionAndReadBack) {
  EXPECT_EQ(ManifestFileName(WeightVersion(41)), "00000000000000000041.manifest");
  EXPECT_EQ(SegmentFileName(WeightVersion(41), 2), "00000000000000000041-0002.safetensors");
  EXPECT_LT(ManifestFileName(WeightVersion(9)), ManifestFileName(WeightVersion(10)));
  for (const uint64_t value : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    EXPECT_EQ(VersionOfManifestFile(ManifestFileName(WeightVersion(value))), WeightVersion(value));
    EXPECT_EQ(VersionOfSegmentFile(SegmentFileName(WeightVersion(value), 12345)),
              WeightVersion(value));
  }
}

TEST(StoreNamesTest, OtherNamesHaveNoVersion) {
  for (const char* name :
       {"", ".manifest", "41.manifest", "00000000000000000041.manifest.tmp",
        "99999999999999999999.manifest", "+0000000000000000041.manifest",
        "0000000000000000004x.manifest", "00000000000000000041-0000.safetensors"}) {
    EXPECT_EQ(VersionOfManifestFile(name), std::nullopt) << name;
  }
  for (const char* name :
       {"", "00000000000000000041.safetensors", "00000000000000000041-000.safetensors",
        "00000000000000000041-000x.safetensors", "00000000000000000041_0000.safetensors",
        "00000000000000000041-0000.safetensors.tmp", "00000000000000000041.manifest"}) {
    EXPECT_EQ(VersionOfSegmentFile(name), std::nullopt) << name;
  }
}

TEST(StoreNamesTest, ModelNamesCannotLeadAnywhere) {
  for (const char* name : {"a", "A-Z_0.9", "...", "..a"}) PW_EXPECT_OK(CheckModelName(name));
  PW_EXPECT_OK(CheckModelName(std::string(128, 'a')));
  for (const std::string& name : {std::string(), std::string("."), std::string(".."),
                                  std::string("a/b"), std::string("a\\b"), std::string("a\0b", 3),
                                  std::string("a b"), std::string("\xc3\xa4"),
                                  std::string(129, 'a')}) {
    EXPECT_THAT(CheckModelName(name), HasReason(Reason::kInvalidRequest)) << name;
  }
}

}  // namespace
}  // namespace planewise
