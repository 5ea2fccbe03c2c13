// Asks OpenShift's own admission code about pods: which of its constraints lets each of them in.
//
// Standard input is one JSON document: the constraints and the namespaces of the cluster, who may use which constraint where, and the pods.
// Standard output is a JSON list with one answer for each pod.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	securityv1 "github.com/openshift/api/security/v1"
	"github.com/openshift/apiserver-library-go/pkg/securitycontextconstraints/sccadmission"
	securityfake "github.com/openshift/client-go/security/clientset/versioned/fake"
	securityinformers "github.com/openshift/client-go/security/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	coreapi "k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
)

// A grant lets an account use a constraint for pods in a namespace. An empty account is every account, an empty namespace every namespace.
type grant struct {
	Namespace  string `json:"namespace"`
	Account    string `json:"account"`
	Constraint string `json:"constraint"`
}

type question struct {
	Constraints []securityv1.SecurityContextConstraints `json:"constraints"`
	Namespaces  []corev1.Namespace                      `json:"namespaces"`
	Grants      []grant                                 `json:"grants"`
	Pods        []corev1.Pod                            `json:"pods"`
}

// An answer has the constraint that lets a pod in, or why none does.
type answer struct {
	Constraint string `json:"constraint,omitempty"`
	Refused    string `json:"refused,omitempty"`
}

// Authorize answers the admission code as the role bindings of a cluster would.
func (q *question) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	if asked.GetVerb() != "use" || asked.GetResource() != "securitycontextconstraints" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	for _, given := range q.Grants {
		account := "system:serviceaccount:" + asked.GetNamespace() + ":" + given.Account
		who := given.Account == "" || asked.GetUser().GetName() == account
		where := given.Namespace == "" || asked.GetNamespace() == given.Namespace
		if who && where && asked.GetName() == given.Constraint {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var asked question
	decoder := json.NewDecoder(os.Stdin)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return fmt.Errorf("question: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var namespaces []runtime.Object
	for i := range asked.Namespaces {
		namespaces = append(namespaces, &asked.Namespaces[i])
	}
	core := informers.NewSharedInformerFactory(kubefake.NewSimpleClientset(namespaces...), 0)
	security := securityinformers.NewSharedInformerFactory(securityfake.NewSimpleClientset(), 0)
	plugin := sccadmission.NewConstraint()
	plugin.SetExternalKubeInformerFactory(core)
	plugin.SetSecurityInformers(security.Security().V1().SecurityContextConstraints())
	plugin.SetAuthorizer(&asked)
	if err := plugin.ValidateInitialization(); err != nil {
		return err
	}
	core.Start(ctx.Done())
	security.Start(ctx.Done())
	core.WaitForCacheSync(ctx.Done())
	security.WaitForCacheSync(ctx.Done())
	// Not by the client: it takes the plural of the kind for another word.
	known := security.Security().V1().SecurityContextConstraints().Informer().GetIndexer()
	for i := range asked.Constraints {
		if err := known.Add(&asked.Constraints[i]); err != nil {
			return err
		}
	}
	answers := make([]answer, 0, len(asked.Pods))
	for i := range asked.Pods {
		one, err := admit(ctx, plugin, &asked.Pods[i])
		if err != nil {
			return fmt.Errorf("pod %s/%s: %w", asked.Pods[i].Namespace, asked.Pods[i].Name, err)
		}
		answers = append(answers, one)
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// The controllers that create pods have no rights on constraints, so the account of the pod decides.
var creator = &user.DefaultInfo{Name: "system:serviceaccount:kube-system:replicaset-controller", Groups: []string{"system:authenticated"}}

func admit(ctx context.Context, plugin admission.MutationInterface, pod *corev1.Pod) (answer, error) {
	corev1conversion.SetObjectDefaults_Pod(pod)
	var internal coreapi.Pod
	if err := corev1conversion.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return answer{}, err
	}
	attributes := admission.NewAttributesRecord(&internal, nil, coreapi.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name,
		coreapi.Resource("pods").WithVersion("v1"), "", admission.Create, &metav1.CreateOptions{}, false, creator)
	if err := plugin.Admit(ctx, attributes, nil); err != nil {
		return answer{Refused: err.Error()}, nil
	}
	return answer{Constraint: internal.Annotations[securityv1.ValidatedSCCAnnotation]}, nil
}
