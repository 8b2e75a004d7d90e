#include "service/session/operand_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "service/session/session_error.h"

namespace planewise {
namespace {

// Does the backward with this operand read the weight's column plane?
bool ReadsColumnPlane(const SavedOperand& saved) {
  return saved.weight->format != Format::kNone &&
         saved.mode.recipe.backward_override == BackwardOverride::kNone;
}

}  // namespace

absl::Status OperandTable::CheckRoom(int64_t saved_bytes) const {
  if (size() >= limits_.handles_max) {
    return QuotaExceeded("saved operands",
                         absl::StrCat(size(), " handles are live; run their backwards or "
                                              "release them"),
                         "handles_max", limits_.handles_max);
  }
  if (saved_bytes > limits_.saved_operand_budget_bytes - saved_bytes_) {
    return QuotaExceeded(
        "saved operands",
        absl::StrCat("this one needs ", saved_bytes, " bytes, ", size(), " live ones hold ",
                     saved_bytes_, "; run their backwards or release them"),
        "saved_operand_budget_bytes", limits_.saved_operand_budget_bytes);
  }
  return absl::OkStatus();
}

HandleId OperandTable::Add(std::shared_ptr<const SavedOperand> saved, std::string layer,
                           const WeightLease& pin) {
  const HandleId handle = next_handle_;
  next_handle_ = next_handle_.Next();
  Operand operand;
  operand.version = pin.version()->version;
  operand.lease =
      pin.ForOperand(layer, ReadsColumnPlane(*saved), [this, handle] { Remove(handle); });
  operand.layer = std::move(layer);
  saved_bytes_ += saved->size_bytes();
  operand.saved = std::move(saved);
  operands_.emplace(handle, std::move(operand));
  return handle;
}

absl::StatusOr<const Operand*> OperandTable::Find(HandleId handle) const {
  PW_RETURN_IF_ERROR(CheckExisted(handle));
  const auto operand = operands_.find(handle);
  if (operand == operands_.end()) {
    return Error(Reason::kOperandEvicted,
                 absl::StrCat("handle ", handle.value(),
                              ": its operand was consumed by a backward, released, or given up "
                              "with its version; run the forward again"))
        .With("handle", static_cast<int64_t>(handle.value()));
  }
  return &operand->second;
}

absl::Status OperandTable::CheckExisted(HandleId handle) const {
  if (handle != HandleId() && handle < next_handle_) return absl::OkStatus();
  return Error(Reason::kUnknownHandle,
               absl::StrCat("handle ", handle.value(), ": this session has given out handles 1 "
                            "to ", next_handle_.value() - 1))
      .With("handle", static_cast<int64_t>(handle.value()));
}

int64_t OperandTable::Remove(HandleId handle) {
  const auto operand = operands_.find(handle);
  if (operand == operands_.end()) return 0;
  const int64_t freed_bytes = operand->second.saved->size_bytes();
  saved_bytes_ -= freed_bytes;
  operands_.erase(operand);
  return freed_bytes;
}

}  // namespace planewise
