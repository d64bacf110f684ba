// Three traversals find the operations that produced y, those that depend on a source, and each
// gradient's number of contributions. The fourth, newest operation first, computes gradients,
// recomputes segments, and delivers a source's gradient with its last contribution. Only the
// program decides the order of sums.
#include "op/precision/precision.h"
#include "op/tape/tape.h"
#include "trace/trace.h"

// In the frame's arena.
typedef struct account {
	choir_tensor *tensor;
	choir_tensor *sum;
	size_t pending;
	size_t source; // 1 + index; 0: not a source
	struct account *next;
} account;

typedef struct {
	choir_frame *frame;
	choir_tensor *y;
	size_t n;
	choir_tensor *const *sources;
	size_t *same; // 1 + next of the same source; 0: last
	chi_ready_fn *ready;
	void *user;
	account *accounts;
	bool recorded;
} pass;

typedef struct {
	size_t count;
	chi_node **node;
} nodes;

static account *account_of(const choir_tensor *t)
{
	return (account *) t->gradient;
}

static account *open_account(pass *p, choir_tensor *t)
{
	if (t->gradient)
		return account_of(t);
	account *a = chi_arena_alloc(&p->frame->arena, sizeof(*a));
	if (!a)
		return NULL;
	a->tensor = t;
	a->next = p->accounts;
	p->accounts = a;
	t->gradient = a;
	return a;
}

static void close_accounts(pass *p)
{
	for (account *a = p->accounts; a; a = a->next) {
		a->tensor->gradient = NULL;
		if (a->sum && !p->recorded)
			a->sum->gradient = NULL;
	}
}

static void set_sum(const pass *p, account *a, choir_tensor *sum)
{
	a->sum = sum;
	if (sum && !p->recorded)
		sum->gradient = a;
}

static void drop_sum(const pass *p, account *a)
{
	if (a->sum && !p->recorded) {
		a->sum->gradient = NULL;
		chi_tensor_drop(a->sum);
	}
	a->sum = NULL;
}

static void drop(const pass *p, choir_tensor *t)
{
	if (!p->recorded)
		chi_tensor_drop(t);
}

static choir_status check_sources(const choir_tape *tape, size_t n, choir_tensor *const sources[])
{
	choir_frame *f = tape->frame;

	for (size_t i = 0; i < n; i++) {
		CHOIR_TRY(chi_frame_made(f, sources[i]));
		if (sources[i]->frame != f)
			return chi_frame_fail(
					f, CHOIR_INVALID, "gradient: source %zu is in another frame than the tape", i);
		if (!chi_dtype_is_float(sources[i]->dtype))
			return chi_frame_fail(f, CHOIR_INVALID,
					"gradient: source %zu is %s; only floating-point tensors have gradients", i,
					choir_dtype_name(sources[i]->dtype));
		CHOIR_TRY(chi_tensor_check(sources[i]));
	}
	return CHOIR_OK;
}

static choir_status check(
		const choir_tape *tape, const choir_tensor *y, size_t n, choir_tensor *const sources[])
{
	choir_frame *f = tape->frame;

	if (f->failed || !y)
		return chi_frame_status(f);
	if (tape->used)
		return chi_frame_fail(f, CHOIR_STATE,
				"gradient: this tape has computed its "
				"gradients already; each tape does it once. For "
				"several losses, add them, or use choir_tape_gradient_recorded");
	if (y->frame != f)
		return chi_frame_fail(f, CHOIR_INVALID, "gradient: y is in another frame than the tape");
	if (!chi_dtype_is_float(y->dtype))
		return chi_frame_fail(f, CHOIR_INVALID,
				"gradient: y is %s; only floating-point tensors have gradients",
				choir_dtype_name(y->dtype));
	CHOIR_TRY(chi_tensor_check(y));
	return check_sources(tape, n, sources);
}

// After `before`, up to last; an earlier pass may have marked them.
static bool list_nodes(const pass *p, const chi_node *before, chi_node *last, nodes *list)
{
	list->count = 0;
	for (chi_node *node = last; node != before; node = node->previous)
		list->count++;
	list->node = chi_arena_alloc(&p->frame->arena, list->count * sizeof(*list->node));
	size_t i = list->node ? list->count : 0;
	for (chi_node *node = last; node != before && list->node; node = node->previous) {
		node->reached = node->wanted = false;
		list->node[--i] = node;
	}
	return list->node != NULL;
}

static bool open_sources(pass *p)
{
	p->same = chi_arena_alloc(&p->frame->arena, p->n * sizeof(*p->same));
	if (!p->same)
		return false;
	for (size_t i = p->n; i-- > 0;) {
		account *a = open_account(p, p->sources[i]);
		if (!a)
			return false;
		p->same[i] = a->source;
		a->source = i + 1;
	}
	return true;
}

static void reach(const nodes *list, const choir_tensor *y)
{
	if (y->node)
		y->node->reached = true;
	for (size_t i = list->count; i-- > 0;) {
		const chi_node *node = list->node[i];
		for (size_t k = 0; node->reached && k < node->n; k++)
			if (node->in[k]->node)
				node->in[k]->node->reached = true;
	}
}

static bool want(pass *p, const nodes *list)
{
	for (size_t i = 0; i < list->count; i++) {
		chi_node *node = list->node[i];
		for (size_t k = 0; node->reached && k < node->n; k++) {
			if (!node->in[k]->gradient)
				continue;
			account_of(node->in[k])->pending++;
			node->wanted = true;
		}
		if (node->wanted && !open_account(p, node->out))
			return false;
	}
	return true;
}

static choir_status hand_over(pass *p, account *a)
{
	choir_tensor *zeros = NULL;
	choir_status status = CHOIR_OK;

	if (!a->sum) {
		zeros = choir_fill(p->frame, a->tensor->dtype, a->tensor->shape, 0);
		CHOIR_TRY(chi_frame_made(p->frame, zeros));
	}
	for (size_t next = a->source; next && status == CHOIR_OK; next = p->same[next - 1])
		status = p->ready(p->user, next - 1, zeros ? zeros : a->sum);
	if (zeros)
		drop(p, zeros);
	// The operation that made the source still needs it.
	if (!a->tensor->node || !a->tensor->node->wanted)
		drop_sum(p, a);
	return status;
}

// y may be a source.
static choir_status hand_over_first(pass *p)
{
	for (size_t i = 0; i < p->n; i++) {
		account *a = account_of(p->sources[i]);
		if (a->source == i + 1 && a->pending == 0)
			CHOIR_TRY(hand_over(p, a));
	}
	return CHOIR_OK;
}

// A 16-bit copy of an f32 tensor takes f32, unless the program wants its gradient.
static choir_dtype dtype_of(const account *a)
{
	return a->source ? a->tensor->dtype : chi_precision_gradient(a->tensor);
}

static choir_tensor *in_dtype_of(const account *a, choir_tensor *gradient)
{
	const choir_dtype dtype = dtype_of(a);
	const bool mixed = chi_dtype_is_half(gradient->dtype) || chi_dtype_is_half(a->tensor->dtype);

	if (!mixed || gradient->dtype == dtype)
		return gradient;
	return choir_cast(choir_to_dense(gradient), dtype);
}

static choir_status add(
		pass *p, const chi_node *node, size_t k, choir_tensor *gradient, size_t mark)
{
	account *a = account_of(node->in[k]);
	char made[CHI_SHAPE_TEXT], needed[CHI_SHAPE_TEXT];

	const choir_shape shape = chi_dense_shape(gradient);

	gradient = in_dtype_of(a, gradient);
	CHOIR_TRY(chi_frame_made(p->frame, gradient));
	if (gradient->dtype != dtype_of(a) || !chi_shape_equal(&shape, &a->tensor->shape))
		return chi_frame_fail(p->frame, CHOIR_INTERNAL,
				"%s: gradient %zu is %s %s; %s %s is needed", node->op->name, k,
				choir_dtype_name(gradient->dtype), chi_shape_print(&shape, made),
				choir_dtype_name(a->tensor->dtype), chi_shape_print(&a->tensor->shape, needed));
	// An older handle, or another input's, must stay.
	if (!p->recorded && (gradient->mark < mark || gradient->gradient))
		gradient = chi_tensor_alias(p->frame, gradient);
	if (gradient && a->sum) {
		const bool slices = chi_is_slices(a->sum) || chi_is_slices(gradient);
		choir_tensor *sum =
				slices ? chi_slices_add(a->sum, gradient) : choir_add(a->sum, gradient);
		drop_sum(p, a);
		drop(p, gradient);
		gradient = sum;
	}
	CHOIR_TRY(chi_frame_made(p->frame, gradient));
	set_sum(p, a, gradient);
	return CHOIR_OK;
}

static void drop_temporaries(const pass *p, const choir_tensor *before)
{
	for (choir_tensor *t = p->frame->tensors; t != before && !p->recorded; t = t->next)
		if (!t->gradient)
			chi_tensor_drop(t);
}

static choir_status go_through_segment(pass *p, const chi_node *node);

static choir_status fail_unrecordable(const pass *p, const chi_op *op)
{
	return chi_frame_fail(p->frame, CHOIR_UNSUPPORTED,
			"gradient: %s has a gradient, but the gradient has none; a recorded backward pass "
			"cannot go through it",
			op->label ? op->label : op->name);
}

static choir_status contribute(pass *p, const chi_node *node)
{
	if (chi_segment_is(node) || (p->recorded && node->op->formula))
		return go_through_segment(p, node);
	if (p->recorded && node->op->foreign)
		return fail_unrecordable(p, node->op);
	choir_frame *f = p->frame;
	const size_t mark = choir_frame_mark(f);
	const choir_tensor *before = f->tensors;
	choir_tensor *gradient[CHI_MAX_INPUTS] = { NULL };
	bool wanted[CHI_MAX_INPUTS];

	for (size_t k = 0; k < node->n; k++)
		wanted[k] = node->in[k]->gradient != NULL;
	choir_tensor *dy = choir_to_dense(account_of(node->out)->sum);
	CHOIR_TRY(chi_frame_made(f, dy));
	choir_status status = node->op->backward(node, &(chi_backward){ dy, wanted, gradient });
	if (status != CHOIR_OK)
		return chi_frame_record_error(f);
	if (f->failed)
		return chi_frame_status(f);
	for (size_t k = 0; k < node->n; k++)
		if (wanted[k] && gradient[k])
			CHOIR_TRY(add(p, node, k, gradient[k], mark));
	drop_temporaries(p, before);
	return CHOIR_OK;
}

static choir_status contribute_in_its_precision(pass *p, const chi_node *node)
{
	const bool before = p->frame->tf32;
	p->frame->tf32 = node->tf32;
	const choir_status status = contribute(p, node);
	p->frame->tf32 = before;
	return status;
}

static choir_status step(pass *p, const chi_node *node)
{
	account *a = account_of(node->out);

	if (node->wanted) {
		if (a->sum)
			CHOIR_TRY(contribute_in_its_precision(p, node));
		drop_sum(p, a);
		for (size_t k = 0; k < node->n; k++) {
			account *in = account_of(node->in[k]);
			if (in && --in->pending == 0 && in->source)
				CHOIR_TRY(hand_over(p, in));
		}
	}
	if (node->reached && node->out != p->y && !(a && a->source))
		drop(p, node->out);
	for (size_t k = node->n - node->op->private_inputs; node->reached && k < node->n; k++)
		drop(p, node->in[k]);
	return CHOIR_OK;
}

static choir_status go_through(pass *p, const nodes *list)
{
	for (size_t i = list->count; i-- > 0;)
		CHOIR_TRY(step(p, list->node[i]));
	return CHOIR_OK;
}

// Lets step() drop results that y does not depend on, which a nested segment may use until here.
static void let_all_die(const nodes *list)
{
	for (size_t i = 0; i < list->count; i++)
		list->node[i]->reached = true;
}

// A segment, or a fused operation.
static choir_tensor *make_again(const chi_node *node, const chi_node **before, chi_node **last)
{
	choir_tape *tape = node->out->frame->tape;

	*before = tape->used ? NULL : tape->last;
	if (chi_segment_is(node))
		return chi_segment_again(node, last);
	choir_tensor *y = node->op->formula(node);
	*last = tape->last;
	return y;
}

// The node's step is one contribution to outside tensors, which are final after it.
static choir_status go_through_segment(pass *p, const chi_node *node)
{
	choir_frame *f = p->frame;
	const choir_tensor *before = f->tensors;
	choir_tensor *dy = account_of(node->out)->sum;
	const chi_node *older = NULL;
	chi_node *last = NULL;
	nodes list;

	choir_tensor *y = make_again(node, &older, &last);
	CHOIR_TRY(chi_frame_made(f, y));
	if (!list_nodes(p, older, last, &list))
		return chi_frame_record_error(f);
	reach(&list, y);
	if (!want(p, &list))
		return chi_frame_record_error(f);
	account *a = account_of(y);
	choir_tensor *alias = p->recorded ? dy : chi_tensor_alias(f, dy);
	CHOIR_TRY(chi_frame_made(f, alias));
	if (a)
		set_sum(p, a, alias);
	let_all_die(&list);
	CHOIR_TRY(go_through(p, &list));
	drop_temporaries(p, before);
	return CHOIR_OK;
}

static choir_status go_back(pass *p, const nodes *list)
{
	reach(list, p->y);
	if (!want(p, list))
		return chi_frame_record_error(p->frame);
	account *a = account_of(p->y);
	if (a) {
		choir_tensor *ones = choir_fill(p->frame, p->y->dtype, p->y->shape, 1);
		CHOIR_TRY(chi_frame_made(p->frame, ones));
		set_sum(p, a, ones);
	}
	CHOIR_TRY(hand_over_first(p));
	return go_through(p, list);
}

static choir_status run(pass *p, choir_tape *tape)
{
	choir_status status;
	nodes list;

	CHOIR_TRY(check(tape, p->y, p->n, p->sources));
	tape->used = !p->recorded;
	chi_trace_begin(CHOIR_TRACE_COMPUTE, "backward");
	if (list_nodes(p, NULL, tape->last, &list) && open_sources(p))
		status = go_back(p, &list);
	else
		status = chi_frame_record_error(p->frame);
	close_accounts(p);
	chi_trace_end();
	return status;
}

choir_status chi_tape_backward(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], chi_ready_fn *ready, void *user)
{
	CHOIR_TRY(chi_frame_made(y ? y->frame : NULL, tape));
	pass p = {
		.frame = tape->frame, .y = y, .n = n, .sources = sources, .ready = ready, .user = user
	};
	return run(&p, tape);
}

static choir_status keep_alias(void *user, size_t index, choir_tensor *gradient)
{
	choir_tensor **gradients = user;
	gradients[index] = chi_tensor_alias(gradient->frame, gradient);
	return gradients[index] ? CHOIR_OK : chi_frame_status(gradient->frame);
}

static choir_status keep(void *user, size_t index, choir_tensor *gradient)
{
	choir_tensor **gradients = user;
	gradients[index] = gradient;
	return CHOIR_OK;
}

static choir_status find_gradients(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[], bool recorded)
{
	for (size_t i = 0; i < n; i++)
		gradients[i] = NULL;
	CHOIR_TRY(chi_frame_made(y ? y->frame : NULL, tape));
	pass p = { .frame = tape->frame,
		.y = y,
		.n = n,
		.sources = sources,
		.ready = recorded ? keep : keep_alias,
		.user = gradients,
		.recorded = recorded };
	const choir_status status = run(&p, tape);
	for (size_t i = 0; i < n && status != CHOIR_OK; i++)
		gradients[i] = NULL;
	return status;
}

choir_status choir_tape_gradient(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[])
{
	return find_gradients(tape, y, n, sources, gradients, false);
}

choir_status choir_tape_gradient_recorded(choir_tape *tape, choir_tensor *y, size_t n,
		choir_tensor *const sources[], choir_tensor *gradients[])
{
	return find_gradients(tape, y, n, sources, gradients, true);
}
