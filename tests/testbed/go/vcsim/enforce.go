package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"

	"github.com/vmware/govmomi/vim25/types"
)

// enforcer stands before the simulator and does what a vCenter does with privileges: a call that needs one that the account lacks ends with
// NoPermission and the privilege, and what an account may not read it is not shown. It learns from the answers to logins whose a session
// is. While nothing is enforced it only checks what is sent to the token service, which the simulator does not.
type enforcer struct {
	control *control

	mu       sync.Mutex
	sessions map[string]string
}

// element is a part of a request.
type element struct {
	name, kind, text string
}

// need is a privilege on an object.
type need struct {
	privilege string
	object    types.ManagedObjectReference
}

// read gives the method of an envelope and all elements in it.
func read(body []byte) (string, []element) {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	var all []element
	var open []int
	method, inBody := "", false
	for {
		token, err := decoder.Token()
		if err != nil {
			return method, all
		}
		switch token := token.(type) {
		case xml.StartElement:
			if inBody && method == "" {
				method = token.Name.Local
			}
			inBody = inBody || token.Name.Local == "Body"
			one := element{name: token.Name.Local}
			for _, attribute := range token.Attr {
				if attribute.Name.Local == "type" && attribute.Name.Space == "" {
					one.kind = attribute.Value
				}
			}
			open = append(open, len(all))
			all = append(all, one)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) > 0 {
				all[open[len(open)-1]].text += string(token)
			}
		}
	}
}

func named(all []element, name string) []element {
	var found []element
	for _, one := range all {
		if one.name == name {
			found = append(found, one)
		}
	}
	return found
}

func objects(all []element, name, kind string) []types.ManagedObjectReference {
	var found []types.ManagedObjectReference
	for _, one := range named(all, name) {
		if one.kind != "" {
			kind = one.kind
		}
		found = append(found, types.ManagedObjectReference{Type: kind, Value: strings.TrimSpace(one.text)})
	}
	return found
}

// needs are the privileges that a call needs, and where.
func (e *enforcer) needs(method string, all []element) []need {
	root := e.control.authorization.root
	on := func(privilege string, objects ...types.ManagedObjectReference) []need {
		var list []need
		for _, object := range objects {
			list = append(list, need{privilege, object})
		}
		return list
	}
	switch method {
	case "AddAuthorizationRole", "UpdateAuthorizationRole", "RemoveAuthorizationRole":
		return on("Authorization.ModifyRoles", root)
	case "SetEntityPermissions", "RemoveEntityPermission":
		return on("Authorization.ModifyPermissions", objects(all, "entity", "")...)
	case "TerminateSession":
		return on("Sessions.TerminateSession", root)
	case "PbmQueryProfile", "PbmRetrieveContent", "PbmCheckRequirements", "PbmCheckCompatibility", "PbmQueryAssociatedProfiles":
		return on("StorageProfile.View", root)
	case "CnsQueryVolume", "CnsQueryAllVolume", "CnsQueryVolumeInfo", "CnsQueryAsync", "CnsUpdateVolumeMetadata", "CnsDeleteVolume", "CnsExtendVolume", "CnsCreateSnapshots", "CnsDeleteSnapshots":
		return on("Cns.Searchable", root)
	case "CnsCreateVolume":
		return append(on("Cns.Searchable", root), on("Datastore.FileManagement", objects(all, "datastores", "Datastore")...)...)
	case "CnsAttachVolume", "CnsDetachVolume":
		machines := objects(all, "vm", "VirtualMachine")
		return append(on("VirtualMachine.Config.AddExistingDisk", machines...), on("VirtualMachine.Config.AddRemoveDevice", machines...)...)
	case "ReconfigVM_Task":
		privilege := "VirtualMachine.Config.Settings"
		if len(named(all, "extraConfig")) > 0 {
			privilege = "VirtualMachine.Config.AdvancedConfig"
		}
		return on(privilege, objects(all, "_this", "")...)
	case "UpgradeVM_Task":
		return on("VirtualMachine.Config.UpgradeVirtualHardware", objects(all, "_this", "")...)
	}
	return nil
}

// tagging is the privilege that a change of tags needs, and on what.
func (e *enforcer) tagging(r *http.Request, text []byte) (string, types.ManagedObjectReference) {
	root := e.control.authorization.root
	path := strings.TrimPrefix(r.URL.Path, "/rest/com/vmware/cis/tagging/")
	what, _, _ := strings.Cut(path, "/")
	kind := map[string]string{"category": "Category", "tag": "Tag"}[what]
	switch {
	case r.Method == http.MethodPost && path == what && kind != "":
		return "InventoryService.Tagging.Create" + kind, root
	case r.Method == http.MethodDelete && kind != "":
		return "InventoryService.Tagging.Delete" + kind, root
	case strings.HasSuffix(r.URL.RawQuery, "action=attach") || strings.HasSuffix(r.URL.RawQuery, "action=detach"):
		var asked struct {
			Object struct{ ID, Type string } `json:"object_id"`
		}
		_ = json.Unmarshal(text, &asked)
		return "InventoryService.Tagging.AttachTag", types.ManagedObjectReference{Type: asked.Object.Type, Value: asked.Object.ID}
	}
	return "", root
}

var setting = regexp.MustCompile(`(?s)<spec>(.*<key>disk\.EnableUUID</key><value[^>]*>([^<]*)</value>.*)</spec>`)

// follow sets the flag of a machine with the setting that a vCenter derives it from.
func follow(text []byte) []byte {
	found := setting.FindSubmatch(text)
	if found == nil {
		return text
	}
	on := strings.EqualFold(string(found[2]), "true")
	return setting.ReplaceAll(text, fmt.Appendf(nil, "<spec><flags><diskUuidEnabled>%t</diskUuidEnabled></flags>$1</spec>", on))
}

func (e *enforcer) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		e.control.record(r)
		switch {
		case strings.HasPrefix(path, "/sts/"):
			e.token(w, r, next)
		case strings.HasPrefix(path, "/rest/com/vmware/cis/"):
			e.rest(w, r, next)
		case path == "/sdk", path == "/pbm", path == "/vsanHealth", strings.HasPrefix(path, "/sso-adminserver/"):
			e.soap(w, r, next)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func body(r *http.Request) []byte {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return text
}

// token lets the token service answer who knows a password only.
func (e *enforcer) token(w http.ResponseWriter, r *http.Request, next http.Handler) {
	_, all := read(body(r))
	users, passwords := named(all, "Username"), named(all, "Password")
	if len(users) != 1 || len(passwords) != 1 || !e.control.check(&types.Login{UserName: users[0].text, Password: passwords[0].text}) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, `<S:Envelope xmlns:S="http://schemas.xmlsoap.org/soap/envelope/"><S:Body><S:Fault><faultcode>FailedAuthentication</faultcode><faultstring>Invalid credentials</faultstring></S:Fault></S:Body></S:Envelope>`)
		return
	}
	next.ServeHTTP(w, r)
}

func (e *enforcer) user(session string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[session]
}

func (e *enforcer) begun(session, user string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sessions[session] = user
}

func (e *enforcer) soap(w http.ResponseWriter, r *http.Request, next http.Handler) {
	method, all := read(body(r))
	session := ""
	if cookie, err := r.Cookie("vmware_soap_session"); err == nil {
		session = strings.Trim(cookie.Value, `"`)
	}
	for _, header := range named(all, "vcSessionCookie") {
		session = strings.Trim(header.text, `"`)
	}
	user := ""
	if e.control.enforce.Load() {
		user = e.user(session)
	}
	if method == "Login" && r.URL.Path == "/sdk" {
		e.login(w, r, next, all)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/sso-adminserver/") && user != "" && method != "Login" && method != "Logout" && !e.control.isAdministrator(user) {
		refuse(w, "SsoFaultNoPermission", "")
		return
	}
	if user != "" {
		for _, need := range e.needs(method, all) {
			if !e.control.authorization.grants(user, need.object, need.privilege) {
				refuse(w, "NoPermission", fmt.Sprintf(`<object type="%s">%s</object><privilegeId>%s</privilegeId>`, need.object.Type, need.object.Value, need.privilege))
				return
			}
			e.control.use(user, need.privilege)
		}
	}
	if !e.control.gate.pass(method, r) {
		return
	}
	if method == "ReconfigVM_Task" {
		text := follow(body(r))
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	if user == "" {
		next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	text := answer.Body.Bytes()
	if strings.HasSuffix(method, "RetrievePropertiesEx") || method == "RetrieveProperties" || strings.HasPrefix(method, "Find") {
		text = e.visible(user, text)
	}
	send(w, answer, text)
}

func (e *enforcer) login(w http.ResponseWriter, r *http.Request, next http.Handler, all []element) {
	answer := httptest.NewRecorder()
	next.ServeHTTP(answer, r)
	users := named(all, "userName")
	for _, cookie := range answer.Result().Cookies() {
		if answer.Code != http.StatusOK || cookie.Name != "vmware_soap_session" || len(users) != 1 {
			continue
		}
		if e.control.enforce.Load() && !e.control.authorization.hasAny(users[0].text) {
			refuse(w, "NoPermission", "")
			return
		}
		e.begun(strings.Trim(cookie.Value, `"`), users[0].text)
	}
	send(w, answer, answer.Body.Bytes())
}

func send(w http.ResponseWriter, answer *httptest.ResponseRecorder, text []byte) {
	for name, values := range answer.Result().Header {
		if name != "Content-Length" {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(text)
}

func refuse(w http.ResponseWriter, kind, inside string) {
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>Permission to perform this operation was denied.</faultstring><detail><%[1]sFault xmlns="urn:vim25" xsi:type="%[1]s">%[2]s</%[1]sFault></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`, kind, inside)
}

var (
	object = regexp.MustCompile(`(?s)<objects><obj (?:xmlns:\S+ )?(?:\S*:)?type="([^"]+)"[^>]*>([^<]*)</obj>.*?</objects>`)
	result = regexp.MustCompile(`<returnval (?:xmlns:\S+ )?(?:\S*:)?type="([^"]+)"[^>]*>([^<]*)</returnval>`)
)

// inventory are the kinds that permissions are about.
var inventory = map[string]bool{
	"Folder": true, "Datacenter": true, "HostSystem": true, "VirtualMachine": true, "Datastore": true, "ComputeResource": true,
	"ClusterComputeResource": true, "ResourcePool": true, "VirtualApp": true, "StoragePod": true,
}

// visible is an answer without the objects that an account may not read.
func (e *enforcer) visible(user string, text []byte) []byte {
	for _, pattern := range []*regexp.Regexp{object, result} {
		text = pattern.ReplaceAllFunc(text, func(part []byte) []byte {
			found := pattern.FindSubmatch(part)
			reference := types.ManagedObjectReference{Type: string(found[1]), Value: string(found[2])}
			if inventory[reference.Type] && !e.control.authorization.grants(user, reference, "System.Read") {
				return nil
			}
			return part
		})
	}
	return text
}

// rest shows the tags of objects to accounts that may read these.
func (e *enforcer) rest(w http.ResponseWriter, r *http.Request, next http.Handler) {
	text := body(r)
	session := r.Header.Get("vmware-api-session-id")
	if user := e.user(session); user != "" && e.control.enforce.Load() && strings.Contains(r.URL.RawQuery, "list-attached-tags") {
		var asked struct {
			Object  *struct{ ID, Type string }  `json:"object_id"`
			Objects []struct{ ID, Type string } `json:"object_ids"`
		}
		_ = json.Unmarshal(text, &asked)
		if asked.Object != nil {
			asked.Objects = append(asked.Objects, *asked.Object)
		}
		for _, one := range asked.Objects {
			if !e.control.authorization.grants(user, types.ManagedObjectReference{Type: one.Type, Value: one.ID}, "System.Read") {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"type":"com.vmware.vapi.std.errors.unauthorized","value":{"messages":[]}}`)
				return
			}
		}
	}
	if user := e.user(session); user != "" && e.control.enforce.Load() {
		if privilege, object := e.tagging(r, text); privilege != "" && !e.control.authorization.grants(user, object, privilege) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"type":"com.vmware.vapi.std.errors.unauthorized","value":{"messages":[]}}`)
			return
		}
	}
	if _, pair, ok := strings.Cut(r.Header.Get("Authorization"), "Basic "); ok && r.Method == http.MethodPost {
		answer := httptest.NewRecorder()
		next.ServeHTTP(answer, r)
		decoded, _ := base64.StdEncoding.DecodeString(pair)
		user, _, _ := strings.Cut(string(decoded), ":")
		var begun struct{ Value string }
		if json.Unmarshal(answer.Body.Bytes(), &begun) == nil && begun.Value != "" {
			e.begun(begun.Value, user)
		}
		send(w, answer, answer.Body.Bytes())
		return
	}
	next.ServeHTTP(w, r)
}
