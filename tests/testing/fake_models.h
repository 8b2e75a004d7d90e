#ifndef PLANEWISE_TESTS_TESTING_FAKE_MODELS_H_
#define PLANEWISE_TESTS_TESTING_FAKE_MODELS_H_
// Models without planes, and a compute that copies instead of multiplying: for
// tests of what stands between a client and the arithmetic.
//
// Not here: real models (hf_model.h), real arithmetic (core/layer/linear.h).

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/clock.h"
#include "core/layer/model_version.h"
#include "service/compute/linear_compute.h"
#include "service/weights/weight_lease.h"

namespace planewise {

// One thread: the executor.
class FakeModels final : public LeaseSource {
 public:
  // `clock` outlives it.
  explicit FakeModels(const Clock& clock);

  // Publishes a new version of `model` (the first is 1) with one linear layer
  // [out, in] without bias, trainable, in the default MXFP8 recipe. Older
  // versions stay leasable.
  WeightVersion Publish(const std::string& model, const std::string& layer, int64_t out,
                        int64_t in);

  // Takes back every lease of that version.
  void Revoke(WeightVersion version) { leases_->Revoke(version); }
  int lease_count() const { return static_cast<int>(leases_->active().size()); }

  // NOT_FOUND.
  absl::StatusOr<WeightLease> Lease(LeaseRequest request) override;

 private:
  std::shared_ptr<LeaseList> leases_;
  WeightVersion last_version_;
  // By name, then by version.
  std::map<std::string, std::map<WeightVersion, std::shared_ptr<const ModelVersion>>> models_;
};

// Every result is a matrix whose rows are the input's rows, cut or filled with
// zeros to the result's width: Y of X, dX of dY. dW is filled with the number of
// tokens, dbias with zeros. A forward that saves keeps X and charges its bytes.
class CopyingCompute final : public LinearCompute {
 public:
  absl::StatusOr<LinearForwardPlan> PlanForward(absl::string_view name,
                                                const PrimaryWeight& weight,
                                                const LinearMode& mode, int64_t tokens,
                                                DType activation) const override;
  absl::StatusOr<LinearForwardOutcome> RunForward(const LinearForwardPlan& plan,
                                                  const HostedLayer& layer, HostBuffer x,
                                                  MutableMatrixView y) const override;
  absl::StatusOr<std::shared_ptr<const SavedOperand>> SaveOperand(const LinearForwardPlan& plan,
                                                                  const HostedLayer& layer,
                                                                  HostBuffer x) const override;
  absl::StatusOr<LinearBackwardPlan> PlanBackward(absl::string_view name,
                                                  const SavedOperand& operand,
                                                  LinearGradients wanted) const override;
  absl::StatusOr<LinearBackwardPlan> RunBackward(const LinearBackwardPlan& plan,
                                                 const SavedOperand& operand, MatrixView dy,
                                                 MutableMatrixView dx, MutableMatrixView dw,
                                                 MutableMatrixView db) const override;
};

}  // namespace planewise

#endif  // PLANEWISE_TESTS_TESTING_FAKE_MODELS_H_
