// Programs of variables: written in replicas and outside, made in replicas, and what is refused.
#include "strategy_program.h"

choir_variable *chi_program_counted(choir_strategy *s, const char *name, int64_t n,
		choir_synchronization synchronization, choir_aggregation aggregation)
{
	float values[16];
	choir_variable *v = NULL;
	for (int i = 0; i < 16; i++)
		values[i] = (float) (i + 1);
	CHOIR_SCOPE (s)
		v = choir_variable_new(name, CHOIR_SHAPE(n),
				CHOIR_OPTIONS(choir_variable_options, .synchronization = synchronization,
						.aggregation = aggregation, .initial_value = values));
	return v;
}

choir_tensor *chi_program_vector(choir_frame *f, int replica, int count, void *user)
{
	(void) count, (void) user;
	const float x[3] = { (float) replica, 1.1f * (float) replica, 0.3f };
	return choir_constant(f, CHOIR_F32, CHOIR_SHAPE(3), x);
}

typedef choir_status assign_fn(choir_variable *v, choir_tensor *value);
static assign_fn *const assigns[] = { choir_variable_assign, choir_variable_assign_add,
	choir_variable_assign_sub };

typedef struct {
	choir_variable *v;
	assign_fn *assign;
	double number; // what all assign; 0: a tensor of their own
} assignment;

static choir_status assign_one(choir_replica *r, void *user)
{
	const assignment *a = user;
	choir_tensor *value = a->number != 0
			? choir_number(r->frame, a->number)
			: chi_program_vector(r->frame, choir_replica_id(r), 0, NULL);
	CHOIR_TRY(a->assign(a->v, value));
	return choir_replica_return(r, "now", choir_variable_read(a->v, r->frame));
}

static choir_status assign_and_record(choir_strategy *s, assignment *a, chi_record *to)
{
	choir_values *results = NULL;
	choir_status status = choir_strategy_run(s, assign_one, a, NULL, &results);
	if (status == CHOIR_OK)
		status = chi_record_leaf(to, results, "now");
	choir_values_free(results);
	return status == CHOIR_OK ? chi_record_variable(to, a->v) : status;
}

static const struct {
	const char *name;
	choir_aggregation aggregation;
} kinds[] = { { "sum", CHOIR_AGGREGATION_SUM }, { "mean", CHOIR_AGGREGATION_MEAN },
	{ "first", CHOIR_AGGREGATION_ONLY_FIRST_REPLICA } };

choir_status chi_program_assign_mirrored(choir_strategy *s, chi_record *to)
{
	for (int k = 0; k < 3; k++) {
		choir_variable *v = chi_program_counted(
				s, kinds[k].name, 3, CHOIR_SYNCHRONIZATION_ON_WRITE, kinds[k].aggregation);
		NEED(v != NULL);
		for (int i = 0; i < 3; i++)
			CHOIR_TRY(assign_and_record(s, &(assignment){ v, assigns[i], 0 }, to));
		if (kinds[k].aggregation != CHOIR_AGGREGATION_SUM)
			CHOIR_TRY(assign_and_record(s, &(assignment){ v, assigns[1], 2.5 }, to));
	}
	return CHOIR_OK;
}

choir_status chi_program_refuse_assigns(choir_strategy *s, chi_record *to)
{
	choir_variable *none =
			chi_program_counted(s, "none", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_variable *sum =
			chi_program_counted(s, "sum", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_SUM);
	NEED(none != NULL && sum != NULL);
	CHOIR_TRY(chi_record_failure(to,
			choir_strategy_run(s, assign_one, &(assignment){ none, assigns[0], 0 }, NULL, NULL),
			CHOIR_INVALID, "variable \"none\":*aggregation"));
	if (choir_strategy_replicas(s) > 1)
		CHOIR_TRY(chi_record_failure(to,
				choir_strategy_run(s, assign_one, &(assignment){ sum, assigns[0], 7 }, NULL, NULL),
				CHOIR_INVALID, "SUM"));
	CHOIR_TRY(chi_record_variable(to, none)); // nothing has changed
	return chi_record_variable(to, sum);
}

choir_status chi_program_assign_parts(choir_strategy *s, chi_record *to)
{
	choir_frame *f = choir_frame_new(NULL);
	NEED(f != NULL);
	choir_status status = CHOIR_OK;
	for (int k = 0; status == CHOIR_OK && k < 3; k++) {
		choir_variable *v = chi_program_counted(
				s, kinds[k].name, 3, CHOIR_SYNCHRONIZATION_ON_READ, kinds[k].aggregation);
		status = v == NULL ? choir_error_status()
						   : assign_and_record(s, &(assignment){ v, assigns[1], 0 }, to);
		if (status == CHOIR_OK)
			status = choir_variable_assign(v, choir_number(f, 6));
		if (status == CHOIR_OK)
			status = assign_and_record(s, &(assignment){ v, assigns[2], 0.5 }, to);
	}
	choir_frame_free(f);
	return status;
}

choir_status chi_program_assign_outside(choir_strategy *s, chi_record *to)
{
	choir_variable *v =
			chi_program_counted(s, "v", 3, CHOIR_SYNCHRONIZATION_AUTO, CHOIR_AGGREGATION_NONE);
	choir_frame *f = v == NULL ? NULL : choir_frame_new(NULL);
	choir_status status = f == NULL ? choir_error_status() : CHOIR_OK;
	for (int i = 0; status == CHOIR_OK && i < 3; i++) {
		status = assigns[i](v, chi_program_vector(f, i + 2, 0, NULL));
		if (status == CHOIR_OK)
			status = chi_record_variable(to, v);
	}
	choir_frame_free(f);
	return status;
}

static choir_status make_inside(choir_replica *r, void *user)
{
	(void) user;
	choir_variable *v = choir_variable_new("inside", CHOIR_SHAPE(2, 4),
			CHOIR_OPTIONS(
					choir_variable_options, .initializer = CHOIR_INITIALIZER_GLOROT_UNIFORM));
	return choir_replica_return(r, "v", choir_variable_read(v, r->frame));
}

choir_status chi_program_make_in_replicas(choir_strategy *s, chi_record *to)
{
	choir_values *results = NULL;
	choir_status status = choir_strategy_run(s, make_inside, NULL, NULL, &results);
	for (int i = 0; status == CHOIR_OK && i < 2; i++) { // made, then found
		status = chi_record_leaf(to, results, "v");
		if (status == CHOIR_OK)
			status = choir_strategy_run(s, make_inside, NULL, NULL, &results);
	}
	choir_values_free(results);
	return status;
}

// What can never be, under no strategy.
choir_status chi_program_refuse_variables(choir_strategy *s, chi_record *to)
{
	static const struct {
		choir_variable_options options;
		const char *text;
	} wrong[] = {
		{ { .dtype = CHOIR_I32, .aggregation = CHOIR_AGGREGATION_MEAN },
				"variable \"v\": aggregation MEAN needs a floating-point dtype" },
		{ { .dtype = CHOIR_I64,
				  .aggregation = CHOIR_AGGREGATION_MEAN,
				  .synchronization = CHOIR_SYNCHRONIZATION_ON_READ },
				"variable \"v\": aggregation MEAN needs a floating-point dtype" },
		{ { .synchronization = CHOIR_SYNCHRONIZATION_NONE }, "variable \"v\": synchronization" },
		{ { .synchronization = (choir_synchronization) 9 }, "variable \"v\": synchronization 9" },
		{ { .aggregation = (choir_aggregation) 9 },
				"variable \"v\": aggregation 9 is unknown; known: NONE, SUM, MEAN and " },
	};
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		choir_variable_options o = wrong[i].options;
		const choir_variable *v = NULL;
		o.size = sizeof o;
		CHOIR_SCOPE (s)
			v = choir_variable_new("v", CHOIR_SHAPE(3), &o);
		NEED(v == NULL);
		CHOIR_TRY(chi_record_failure(to, choir_error_status(), CHOIR_INVALID, wrong[i].text));
	}
	return CHOIR_OK;
}

// Replica k brings rows 1 and k.
static choir_status scatter_rows(choir_replica *r, void *user)
{
	const int id = choir_replica_id(r);
	choir_tensor *rows = choir_constant(r->frame, CHOIR_I32, CHOIR_SHAPE(2), (int32_t[]){ 1, id });
	choir_tensor *values = choir_fill(r->frame, CHOIR_F32, CHOIR_SHAPE(2), 1.1 * (id + 1));
	return choir_variable_scatter(user, CHOIR_SCATTER_SUB, rows, values);
}

// In replicas rows are aggregated as the variable says, wherever it lies.
choir_status chi_program_scatter(choir_strategy *s, chi_record *to)
{
	for (int k = 0; k < 3; k++) {
		choir_variable *v = chi_program_counted(
				s, kinds[k].name, 16, CHOIR_SYNCHRONIZATION_ON_WRITE, kinds[k].aggregation);
		NEED(v != NULL);
		CHOIR_TRY(choir_strategy_run(s, scatter_rows, v, NULL, NULL));
		CHOIR_TRY(chi_record_variable(to, v));
	}
	return CHOIR_OK;
}
