// A C++17 program: options, scopes and shapes in the language's own clothes, an object that owns
// its strategy, a failure that becomes an exception.
#include <choir/choir.h>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace
{

struct free_strategy {
	void operator()(choir_strategy *s) const
	{
		choir_strategy_free(s);
	}
};
struct free_values {
	void operator()(choir_values *v) const
	{
		choir_values_free(v);
	}
};

void check(choir_status status)
{
	if (status != CHOIR_OK)
		throw std::runtime_error(choir_error());
}

static_assert(!std::is_convertible<int, choir_axes>::value, "the number of an axis is no set");

class line
{
  public:
	explicit line(int replicas)
		: strategy_(choir_mirrored_strategy_new(CHOIR_OPTIONS(choir_strategy_options,
				  .replicas = replicas, .devices = "cpu:0,cpu:1", .seed = 3, .seed = 2, .seed = 1,
				  .seed = 0, .seed = 9, .seed = 8, .seed = 7, .seed = 3))) // any number of them
	{
		if (!strategy_)
			throw std::runtime_error(choir_error());
		CHOIR_SCOPE (strategy_.get()) {
			slope_ = choir_variable_new("slope", CHOIR_SHAPE(1), nullptr);
			level_ = choir_variable_new("level", CHOIR_SHAPE(1),
					CHOIR_OPTIONS(choir_variable_options, .initializer = CHOIR_INITIALIZER_ONES));
			adam_ = choir_optimizer_new(
					CHOIR_ADAM, CHOIR_OPTIONS(choir_optimizer_options, .learning_rate = 0.1));
		}
		if (!slope_ || !level_ || !adam_)
			throw std::runtime_error(choir_error());
	}

	double fit(const std::vector<float> &x, const std::vector<float> &y, int steps)
	{
		std::unique_ptr<choir_values, free_values> batch(choir_values_new(strategy_.get()));
		choir_values *results = nullptr;
		choir_frame *f = choir_values_frame(batch.get());
		check(choir_values_split(
				batch.get(), "x", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(x.size(), 1), x.data())));
		check(choir_values_split(
				batch.get(), "y", choir_borrow(f, CHOIR_F32, CHOIR_SHAPE(y.size(), 1), y.data())));
		double loss = NAN;
		for (int i = 0; i < steps; i++) {
			check(choir_strategy_run(strategy_.get(), step, this, batch.get(), &results));
			loss = choir_tensor_number(choir_strategy_reduce(strategy_.get(), CHOIR_SUM,
					choir_values_find(results, "loss"), CHOIR_NO_AXIS));
		}
		choir_values_free(results);
		return loss;
	}

	float slope() const
	{
		float value = NAN;
		choir_frame *frame = choir_frame_new(nullptr);
		check(choir_tensor_to_host(choir_variable_read(slope_, frame), &value, sizeof value));
		choir_frame_free(frame);
		return value;
	}

	choir_strategy *strategy() const
	{
		return strategy_.get();
	}

  private:
	static choir_status step(choir_replica *r, void *user)
	{
		auto *self = static_cast<line *>(user);
		choir_tape *tape = choir_tape_begin(r->frame);
		choir_tensor *x = choir_replica_arg(r, "x");
		choir_tensor *y = choir_add(choir_multiply(x, choir_variable_read(self->slope_, r->frame)),
				choir_variable_read(self->level_, r->frame));
		choir_tensor *loss = choir_replica_average_loss(
				r, choir_mean_squared_error(choir_replica_arg(r, "y"), y));
		CHOIR_TRY(choir_replica_return(r, "loss", loss));
		return choir_optimizer_minimize(self->adam_, loss, tape);
	}

	std::unique_ptr<choir_strategy, free_strategy> strategy_;
	choir_variable *slope_ = nullptr, *level_ = nullptr;
	choir_optimizer *adam_ = nullptr;
};

// As status.h asks: no exception leaves it.
choir_status fails(choir_replica *r, void *) noexcept
try {
	if (choir_replica_id(r) == 1)
		throw std::runtime_error("no more");
	return CHOIR_OK;
} catch (const std::exception &e) {
	return choir_fail(CHOIR_INVALID, "%s", e.what());
}

bool failure_is_an_exception(const line &l)
{
	try {
		check(choir_strategy_run(l.strategy(), fails, nullptr, nullptr, nullptr));
	} catch (const std::runtime_error &e) {
		return std::string(e.what()) == "replica 1: no more";
	}
	return false;
}

// Not as status.h asks: it throws through Choir, on the thread that called it.
choir_status throws(choir_replica *r, void *)
{
	if (choir_replica_id(r) == 0)
		throw std::runtime_error("through Choir");
	return choir_replica_all_reduce(r, CHOIR_SUM, choir_number(r->frame, 1)) == nullptr
			? choir_error_status()
			: CHOIR_OK;
}

bool thrown_through(choir_strategy *s)
{
	try {
		check(choir_strategy_run(s, throws, nullptr, nullptr, nullptr));
	} catch (const std::runtime_error &e) {
		return std::string(e.what()) == "through Choir";
	}
	return false;
}

// The strategy can only be freed after it, and the next one works.
bool exception_through_choir_is_refused()
{
	std::unique_ptr<line> left(new line(2));
	if (!thrown_through(left->strategy()))
		return false;
	if (choir_strategy_run(left->strategy(), fails, nullptr, nullptr, nullptr) != CHOIR_STATE ||
			std::string(choir_error()).find("was left by") == std::string::npos)
		return false;
	left.reset();
	return failure_is_an_exception(line(2));
}

} // namespace

int main()
{
	std::vector<float> x, y;
	for (int i = 0; i < 31; i++) {
		x.push_back(static_cast<float>(i) / 15 - 1);
		y.push_back(2 * x.back() - 0.5f);
	}
	try {
		line l(3);
		const double loss = l.fit(x, y, 300);
		if (!(loss < 1e-4) || std::fabs(l.slope() - 2) > 0.05f) {
			std::printf("failed: loss %g, slope %g\n", loss, static_cast<double>(l.slope()));
			return 1;
		}
		if (!failure_is_an_exception(l)) {
			std::printf("failed: another text: %s\n", choir_error());
			return 1;
		}
		if (!exception_through_choir_is_refused()) {
			std::printf("failed: an exception through Choir: %s\n", choir_error());
			return 1;
		}
		const double again = l.fit(x, y, 1); // after a failed run the next one works
		if (!(again < 1e-4)) {
			std::printf("failed: loss %g after a failed run\n", again);
			return 1;
		}
	} catch (const std::runtime_error &e) {
		std::printf("failed: %s\n", e.what());
		return 1;
	}
	return 0;
}
